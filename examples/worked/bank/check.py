"""Two heads, two senses of "bank"."""
import math

from example import EPSILON, cosine, dot, floats, share_error


# The components that heads keep of queries and keys.
HEADS = ((0, 2), (1, 3))


def check_heads(example):
    """Checks weights and outputs of "river bank" through two heads, one head after the
    other, by the formula."""
    words = ((0, 1, 0, 0), (1, 1, 0, 0))
    arguments = ("--vectors", "river_bank.txt", "--layer", "senses",
                 "--temperature", .1)
    got = example.head_weights(*arguments)
    outputs = [floats(output) for output in
               example.ask("contextualize", *arguments)["outputs"]]
    # A logit below 8 after four roundings, as in `check`.
    share = share_error(8, 8 * 4 * EPSILON)
    for h, kept in enumerate(HEADS):
        for row, query in enumerate(words):
            e = [math.exp(sum(query[d] * key[d] for d in kept)
                          / math.sqrt(2) / .1) for key in words]
            for column, weight in enumerate(e):
                example.weight(f"head {h}: {row} on {column}",
                               got[h][row][column], weight / sum(e), share)
            # Two products are added.
            for d, column in enumerate(zip(*words)):
                example.weight(f"head {h}: output of {row}[{d}]",
                               outputs[row][4 * h + d],
                               dot(e, column) / sum(e), share + 3 * EPSILON)


def check(example):
    reply = example.ask("attend", "meanings", "--vector", "1,1,0,0",
                        "--weights", "catalog", "--by-head")
    items = {item["id"]: item for item in reply["items"]}
    # A head of two components: a logit of 10 / sqrt 2 against three of 0. It
    # is a float below 8 after four roundings: of the projections, the scale
    # and the product.
    e = math.exp(10 / math.sqrt(2))
    most, least = e / (e + 3), 1 / (e + 3)
    share = share_error(8, 8 * 4 * EPSILON)
    for head, of_head in enumerate(("money", "river")):
        for name, item in items.items():
            example.weight(f"head {head} on {name}", item["headWeights"][head],
                           most if name == of_head else least, share)
        example.true(f"head {head}: more than .99",
                     items[of_head]["headWeights"][head] > .99)
        # Proto JSON writes zeros in lists.
        example.equal(f"{of_head} was earned by", items[of_head]["head"], head)
        # Two floats are added and halved.
        example.weight(f"the mean shows {of_head}", items[of_head]["weight"],
                       (most + least) / 2, share + 2 * EPSILON)

    check_heads(example)
    river, savings, bank = (0, 1, 0, 0), (1, 0, 0, 0), (1, 1, 0, 0)
    outputs = {}
    for name, neighbour, other in (("river_bank", river, savings),
                                   ("savings_bank", savings, river)):
        reply = example.ask("contextualize", "--vectors", f"{name}.txt")
        outputs[name] = floats(reply["outputs"][1])
        example.true(f"bank in {name} is nearest its neighbour",
                     cosine(outputs[name], neighbour) >
                     cosine(outputs[name], other))
    # Logits 1/2 and 1: bank keeps w of itself and takes 1 - w of its
    # neighbour. Eight roundings of floats at most 1.
    w = 1 / (1 + math.exp(-.5))
    example.all_near("bank by the river", outputs["river_bank"],
                     [w, 1, 0, 0], 8 * EPSILON)
    example.all_near("bank of savings", outputs["savings_bank"],
                     [1, w, 0, 0], 8 * EPSILON)
    example.true("one word, two outputs",
                 outputs["river_bank"] != outputs["savings_bank"])
    example.true("without its neighbour bank is as near to both",
                 cosine(bank, river) == cosine(bank, savings))
