"""m x n networks against m + n projections, and the scores themselves."""
import math
import operator

from example import EPSILON

DIM = 64


def table(path):
    return [[float(x) for x in line.replace(",", " ").split()]
            for line in path.read_text().splitlines()]


def apply(matrix, vector):
    return [sum(map(operator.mul, row, vector)) for row in matrix]


def check(example):
    w, u, w_q, w_k = (table(example.work / f"{name}.txt")
                      for name in ("W", "U", "W_Q_1", "W_K_1"))
    (v,) = table(example.work / "v.txt")
    items = table(example.work / "items.txt")
    query = table(example.work / "queries.txt")[0]
    text = ",".join(map(str, query))
    projected = {
        index["keyField"]: int(index["projectedKeyCount"]) for index in
        example.ask("catalog", "describe", "scored")["catalog"]["indexes"]}
    for field in ("additive", "dot"):
        reply = example.ask("attend", "scored", "--field", field, "--vector",
                            text, "-k", 5, "--weights", "catalog")
        example.equal(f"{field}: pairs", int(reply["stats"]["scoredCount"]),
                      len(items))
        example.equal(f"{field}: queries projected",
                      int(reply["stats"]["projectedQueryCount"]), 1)
        example.equal(f"{field}: keys projected", projected[field], len(items))
        if field == "additive":
            asked = apply(w, query)
            parts = [[vi * math.tanh(a + b)
                      for vi, a, b in zip(v, asked, apply(u, key))]
                     for key in items]
        else:
            # W_Q_i and W_K_i stand for x W.
            asked = apply(list(zip(*w_q)), query)
            columns = list(zip(*w_k))
            parts = [[a * b for a, b in zip(asked, apply(columns, key))]
                     for key in items]
        want = list(map(sum, parts))
        # A sum of 64 parts, each of them of sums of 64 inputs: 2 x 64 roundings
        # of what is, in magnitude, at most the parts' sum and what a
        # component's own sum added up (some ten times as much).
        errors = [10 * 2 * DIM * EPSILON * sum(map(abs, part))
                  for part in parts]
        order = sorted(range(len(items)), key=lambda i: -want[i])
        example.true(f"{field}: six apart", all(
            want[a] - want[b] > errors[a] + errors[b]
            for a, b in zip(order[:5], order[1:6])))
        example.equal(f"{field}: the best five",
                      [item["id"] for item in reply["items"]],
                      [f"item{i}" for i in order[:5]])
        for item in reply["items"]:
            i = int(item["id"][4:])
            example.near(f"{field}: {item['id']}", item["similarity"], want[i],
                         errors[i])
