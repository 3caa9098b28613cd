"""m x n networks against m + n projections, and the scores themselves."""
import math

from example import EPSILON

DIM = 64


def table(path):
    return [[float(x) for x in line.replace(",", " ").split()]
            for line in path.read_text().splitlines()]


def apply(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def check(example):
    w, u, w_q, w_k = (table(example.work / f"{name}.txt")
                      for name in ("W", "U", "W_Q_1", "W_K_1"))
    (v,) = table(example.work / "v.txt")
    items = table(example.work / "items.txt")
    query = table(example.work / "queries.txt")[0]
    text = ",".join(map(str, query))
    for field in ("additive", "dot"):
        reply = example.ask("attend", "scored", "--field", field, "--vector",
                            text, "-k", 5, "--weights", "catalog")
        example.equal(f"{field}: pairs", int(reply["stats"]["scoredCount"]),
                      len(items))
        for item in reply["items"]:
            key = items[int(item["id"][4:])]
            if field == "additive":
                parts = [vi * math.tanh(a + b) for vi, a, b in
                         zip(v, apply(w, query), apply(u, key))]
            else:
                # W_Q_i and W_K_i stand for x W.
                parts = [a * b for a, b in
                         zip(apply(zip(*w_q), query), apply(zip(*w_k), key))]
            # A sum of 64 parts, each of them of sums of 64 inputs: 2 x 64
            # roundings of what is, in magnitude, at most the parts' sum and
            # what a component's own sum added up (some ten times as much).
            size = sum(abs(part) for part in parts)
            example.near(f"{field}: {item['id']}", item["similarity"],
                         sum(parts), 10 * 2 * DIM * EPSILON * size)
