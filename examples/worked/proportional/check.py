"""Compares draws with weights. The seeds are fixed, but draws may change with the
machine's last digits. So estimates may differ by five standard errors: a normal
one exceeds that once in 1.7 million runs, and that of slates, whose error is
itself estimated, once in 80,000 (Student's t with 39 degrees of freedom)."""
import math
import re

from example import share_error

ERRORS = 5
ASK = ("attend", "books", "--field", "title", "--text", "The Alchemist",
       "--temperature", .3, "--show", "title")


def reward(item):
    return len(item["attributes"]["title"]["stringValue"])


def check_slates(example, everything, policy, error):
    """Checks that a slate's probabilities are those of its one threshold, and not
    those of drawing one after the other."""
    weights = {item["id"]: item["weight"] for item in everything}
    gap = everything[0]["logit"] - everything[-1]["logit"]
    # The error of two weights, or of one and the sum of others.
    share = 2 * share_error(gap)
    reply = example.ask(*ASK, "--sample", "-k", 40, "--seed", 1)
    slate = reply["items"]
    example.equal("different books", len({item["id"] for item in slate}), 40)
    # P(in the slate | kappa) = 1 - exp(-weight exp(-kappa)) (Kool et al. 2019).
    for item in slate:
        hazard = -math.log1p(-math.exp(item["logInclusionGivenThreshold"]))
        example.weight(f"inclusion of {item['id']}", hazard,
                       weights[item["id"]] * math.exp(-reply["slate"]["kappa"]),
                       share)
    # Each draw takes one of the items that the draws before it left.
    rest = dict(weights)
    log_probability = 0
    for item in slate:
        draw = rest[item["id"]] / sum(rest.values())
        example.weight(f"draw of {item['id']}", math.exp(item["logWeight"]),
                       draw, share)
        log_probability += math.log(draw)
        del rest[item["id"]]
    example.near("the slate's log probability",
                 reply["slate"]["logProbability"], log_probability,
                 len(slate) * share)
    careless = sum(weights[item["id"]] * reward(item)
                   / math.exp(item["logWeight"]) for item in slate)
    example.true(f"one after the other, {careless} would be found out",
                 abs(careless - policy) > ERRORS * error)
    # No item is left to be a threshold: all are certain, and no reply says so.
    slate = example.ask(*ASK, "--sample", "-k", len(weights), "--seed", 1)
    example.equal("in a slate of all", {
        (item["id"], "logInclusionGivenThreshold" in item)
        for item in slate["items"]}, {(book, False) for book in weights})


def check_draws(example, everything):
    """Checks that draws with replacement are logged with the items' weights."""
    weights = {item["id"]: item["weight"] for item in everything}
    gap = everything[0]["logit"] - everything[-1]["logit"]
    for item in example.ask(*ASK, "--sample", "--with-replacement", "-k", 200,
                            "--seed", 1)["items"]:
        example.weight(f"a draw of {item['id']}", math.exp(item["logWeight"]),
                       weights[item["id"]], 2 * share_error(gap))


def check(example):
    text = example.said["./draws.py"]
    # A chi-square of k degrees of freedom is above k + 6 sqrt(2 k), some six
    # standard deviations, once in a million tries.
    draws, found, freedom = (float(number.replace(",", "")) for number in
                             re.search(r"([\d,]+) draws, chi-square ([\d.]+) "
                                       r"with (\d+)", text).groups())
    example.true(f"counts follow weights: chi-square {found}",
                 found < freedom + 6 * (2 * freedom) ** .5)

    items = example.ask(*ASK, "--weights", "catalog", "-k", 1000)["items"]
    books = [(item["weight"], reward(item)) for item in items]
    policy = sum(weight * earned for weight, earned in books)
    alike = sum(earned for _, earned in books) / len(books)
    said = {name: tuple(map(float, numbers)) for name, *numbers in re.findall(
        r"(drawn|slates of 60|same draws) ([\d.]+) ± ([\d.]+)", text)}

    def holds(name, truth, variance, careless):
        """Checks that an estimate is as near as its variance says, and that this is
        near enough to tell it from the `careless` one without probabilities."""
        # Three digits are printed.
        tolerance = ERRORS * variance ** .5 + .0005
        example.near(name, said[name][0], truth, tolerance)
        example.true(f"{name}: {careless} would be found out",
                     abs(careless - truth) > tolerance)

    # The variance of one draw: sum of p x^2, minus the square of the mean.
    one = sum(weight * earned ** 2 for weight, earned in books) - policy ** 2
    holds("drawn", policy, one / draws, alike)
    # In this sum x = reward / (n p).
    one = (sum(earned ** 2 / weight for weight, earned in books)
           / len(books) ** 2 - alike ** 2)
    holds("same draws", alike, one / draws, policy)
    # There is no such sum for slates. The variation of their estimates must be small
    # enough to tell them from what showing all alike would earn.
    holds("slates of 60", policy, said["slates of 60"][1] ** 2, alike)
    check_draws(example, items)
    check_slates(example, items, policy, said["slates of 60"][1])
