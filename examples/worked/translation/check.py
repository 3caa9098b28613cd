"""Cross-attention: French queries, English keys and values."""
import math

from example import EPSILON, floats, share_error

FRENCH = "le chat noir dort sur le toit chaud".split()
# The English position of each French word.
ALIGNED = (0, 2, 1, 3, 4, 5, 7, 6)


def table(path):
    return [[float(x) for x in line.split()]
            for line in path.read_text().splitlines()
            if not line.startswith("#")]


def check(example):
    queries = table(example.folder / "french.txt")
    keys = table(example.folder / "english.txt")
    arguments = ("--vectors", "french.txt", "--memory", "english.txt",
                 "--score", "dot", "--temperature", "0.2")
    (weights,) = example.head_weights(*arguments)
    reply = example.ask("contextualize", *arguments)
    for i, query in enumerate(queries):
        logits = [sum(a * b for a, b in zip(query, key)) / .2 for key in keys]
        e = [math.exp(x) for x in logits]
        want = [x / sum(e) for x in e]
        # The rounding of a logit below 8 changes a weight by as much. Two inputs, a
        # product, a scale and seven sums round it.
        share = share_error(8, 8 * 11 * EPSILON)
        output = floats(reply["outputs"][i])
        example.equal(f"{FRENCH[i]}: sizes", (len(weights[i]), len(output)),
                      (len(keys), len(query)))
        for j, weight in enumerate(want):
            example.weight(f"{FRENCH[i]} on {j}", weights[i][j], weight, share)
        for d, component in enumerate(output):
            parts = [w * key[d] for w, key in zip(want, keys)]
            # Each part has the errors of its weight and its product, and the sum that
            # of adding up the parts.
            example.near(f"output of {FRENCH[i]}[{d}]", component, sum(parts),
                         (share + (len(keys) + 1) * EPSILON)
                         * sum(map(abs, parts)))
        best = max(range(len(keys)), key=lambda j: weights[i][j])
        example.equal(f"{FRENCH[i]} looks at", best, ALIGNED[i])
