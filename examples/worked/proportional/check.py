"""Draws against weights. The seeds are fixed, but what they draw may change
with the machine's last digits, so that all is checked as chance allows: to five
standard errors, which one run in two million passes."""
import re

ERRORS = 5


def check(example):
    text = example.said.get("./draws.py") or example.shell("./draws.py")
    # A chi-square of k degrees of freedom is above k + 6 sqrt(2 k), some six
    # standard deviations, once in a million tries.
    draws, found, freedom = (float(number.replace(",", "")) for number in
                             re.search(r"([\d,]+) draws, chi-square ([\d.]+) "
                                       r"with (\d+)", text).groups())
    example.true(f"counts follow weights: chi-square {found}",
                 found < freedom + 6 * (2 * freedom) ** .5)

    items = example.ask("attend", "books", "--field", "title", "--text",
                        "The Alchemist", "--temperature", .3, "--show",
                        "title", "--weights", "catalog", "-k", 1000)["items"]
    books = [(item["weight"],
              len(item["attributes"]["title"]["stringValue"]))
             for item in items]
    policy = sum(weight * reward for weight, reward in books)
    alike = sum(reward for _, reward in books) / len(books)
    said = {name: tuple(map(float, numbers)) for name, *numbers in re.findall(
        r"(drawn|slates of 20|same draws) ([\d.]+) ± ([\d.]+)", text)}

    def holds(name, truth, variance, careless):
        """That an estimate is as near as its variance says, which is near
        enough to tell it from the `careless` one that leaves probabilities
        out."""
        # Three digits are printed.
        tolerance = ERRORS * variance ** .5 + .0005
        example.near(name, said[name][0], truth, tolerance)
        example.true(f"{name}: {careless} would be found out",
                     abs(careless - truth) > tolerance)

    # The variance of one draw: sum of p x^2, minus the square of the mean.
    one = sum(weight * reward ** 2 for weight, reward in books) - policy ** 2
    holds("drawn", policy, one / draws, alike)
    # Here x = reward / (n p).
    one = (sum(reward ** 2 / weight for weight, reward in books)
           / len(books) ** 2 - alike ** 2)
    holds("same draws", alike, one / draws, policy)
    # Of slates we know no such sum: what their estimates vary by. Each book
    # counted for itself only, a slate would have this at most.
    most = sum(sorted(weight * reward for weight, reward in books)[-20:])
    holds("slates of 20", policy, said["slates of 20"][1] ** 2, most)
