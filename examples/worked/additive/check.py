"""Checks the counts of networks and projections, and the scores themselves."""
import math
import operator

from example import EPSILON, MOST_LOGIT_ERROR

DIM = 64


def table(path):
    return [[float(x) for x in line.replace(",", " ").split()]
            for line in path.read_text().splitlines()]


def apply(matrix, vector):
    return [sum(map(operator.mul, row, vector)) for row in matrix]


def projection_errors(matrix, vector):
    """Returns the largest error of each component of matrix x vector. Each of its DIM
    products has two rounded inputs and is rounded, and their sum adds DIM more."""
    return [(DIM + 3) * EPSILON * size
            for size in apply([list(map(abs, row)) for row in matrix],
                              list(map(abs, vector)))]


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
            left, right = w, u
        else:
            # W_Q_i and W_K_i are used as x W.
            left, right = list(zip(*w_q)), list(zip(*w_k))
        asked = apply(left, query)
        asked_errors = projection_errors(left, query)
        want, errors = [], []
        for key in items:
            kept = apply(right, key)
            kept_errors = projection_errors(right, key)
            if field == "additive":
                parts = [vi * math.tanh(a + b)
                         for vi, a, b in zip(v, asked, kept)]
                # The slope of tanh is at most 1, and its own error 2^-21, 8
                # roundings. v is rounded, too.
                inputs = [abs(vi) * (da + db) for vi, da, db
                          in zip(v, asked_errors, kept_errors)]
                roundings = DIM + 9
            else:
                parts = list(map(operator.mul, asked, kept))
                inputs = [abs(a) * db + abs(b) * da for a, b, da, db
                          in zip(asked, kept, asked_errors, kept_errors)]
                roundings = DIM
            want.append(sum(parts))
            # Errors of the inputs, and of adding up DIM parts.
            errors.append(sum(inputs)
                          + roundings * EPSILON * sum(map(abs, parts)))
        order = sorted(range(len(items)), key=lambda i: -want[i])
        example.true(f"{field}: the best five lie apart", all(
            want[order[i]] - want[j] > errors[order[i]] + errors[j]
            for i in range(5) for j in order[i + 1:]))
        example.equal(f"{field}: the best five",
                      [item["id"] for item in reply["items"]],
                      [f"item{i}" for i in order[:5]])
        scale = 1 if field == "additive" else DIM ** -.5
        example.true(f"{field}: logits are off by less than all stories' most",
                     max(errors) * scale < MOST_LOGIT_ERROR)
        for item in reply["items"]:
            i = int(item["id"][4:])
            example.near(f"{field}: {item['id']}", item["similarity"], want[i],
                         errors[i])
