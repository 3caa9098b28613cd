"""Checks nine one-hot words against numbers from the formula."""
import math

from example import EPSILON, floats, share_error

ITSELF = .148538739355  # e^(1/3) / (e^(1/3) + 8)
OTHER = .106432657581  # 1 / (e^(1/3) + 8)
LOG_PARTITION = 2.240242817019


def attend(tokens):
    """Returns self-attention in doubles, SCALED_DOT without projections."""
    scale = 1 / math.sqrt(len(tokens[0]))
    outputs = []
    for query in tokens:
        e = [math.exp(scale * sum(a * b for a, b in zip(query, key)))
             for key in tokens]
        outputs.append([sum(e[j] * tokens[j][d] for j in range(len(tokens)))
                        / sum(e) for d in range(len(query))])
    return outputs


def check(example):
    words = (example.folder / "words.txt").read_text().split()
    # The only logit that is not 0 is 1/3, rounded to a float. The error of a log
    # partition is the relative error of its sum.
    share = share_error(1 / 3, EPSILON / 3)
    for word in words:
        reply = example.ask("attend", "sentence", "--like", word,
                            "--include-examples", "--weights", "catalog")
        example.near(f"log partition of {word}", reply["logPartition"],
                     LOG_PARTITION, share)
        for item in reply["items"]:
            example.weight(f"{word} to {item['id']}", item["weight"],
                           ITSELF if item["id"] == word else OTHER, share)
        example.equal(f"{word}: items", len(reply["items"]), 9)

    one_hot = [[float(i == j) for j in range(9)] for i in range(9)]
    once = attend(one_hot)
    tokens = ["--vectors", "vectors.txt"]
    first = example.ask("contextualize", *tokens)
    second = example.ask("contextualize", *tokens, "--layer", "same",
                         "--layer", "same")
    for reply, want, layers in ((first, once, 1), (second, attend(once), 2)):
        example.equal("outputs", len(reply["outputs"]), 9)
        for i, output in enumerate(reply["outputs"]):
            # Weights and outputs are floats below 1/4. A layer rounds the
            # logit, each exponential, each of nine sums and the quotient.
            example.all_near(f"layer {layers}, output {i}", floats(output),
                             want[i], 12 * layers * EPSILON / 4)
    # Two layers equal one layer used twice: floats are written with at least nine
    # digits, and read back unchanged.
    (example.work / "once.txt").write_text("".join(
        " ".join(map(repr, floats(output))) + "\n"
        for output in first["outputs"]))
    again = example.ask("contextualize", "--vectors", "once.txt")
    example.equal("a layer over the outputs of a layer",
                  list(map(floats, again["outputs"])),
                  list(map(floats, second["outputs"])))
    example.true("two layers mix more than one",
                 floats(second["outputs"][0])[0] <
                 floats(first["outputs"][0])[0])
