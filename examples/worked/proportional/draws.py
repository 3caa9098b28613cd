#!/usr/bin/python3
"""Draws books in proportion to their weights and counts the draws.

Prints the weight of each book and how often it was drawn. Then prints estimates of
a known reward, with each draw weighted by the inverse of its logged probability,
and their standard errors.
"""
import json
import math
import subprocess
import sys

DRAWS = 10000
ROUNDS = 5
SLATES = 40
SLATE = 60
SHOWN = 8
BAR = 40


def attend(*arguments):
    result = subprocess.run(
        ["attendant", "--json", "attend", "books", "--field", "title",
         "--text", "The Alchemist", "--temperature", "0.3",
         "--show", "title", *map(str, arguments)],
        stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(result.returncode)
    return json.loads(result.stdout)


def reward(item):
    """Returns the reward, which is known in this example: the title's length."""
    return len(item["attributes"]["title"]["stringValue"])


def bar(share):
    """Returns a bar, to the nearest eighth of a block."""
    eighths = round(8 * BAR * share)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


everything = attend("--weights", "catalog", "-k", 1000)["items"]
weights = {item["id"]: item["weight"] for item in everything}
rewards = {item["id"]: reward(item) for item in everything}


def mean_and_error(estimates):
    """Returns the mean of independent estimates and its standard error."""
    mean = sum(estimates) / len(estimates)
    square = sum((x - mean) ** 2 for x in estimates) / (len(estimates) - 1)
    return f"{mean:.3f} ± {(square / len(estimates)) ** .5:.3f}"


counts = dict.fromkeys(weights, 0)
on_policy = []
alike = []
for seed in range(1, ROUNDS + 1):
    for item in attend("--sample", "--with-replacement", "-k", DRAWS,
                       "--seed", seed)["items"]:
        counts[item["id"]] += 1
        probability = math.exp(item["logWeight"])
        on_policy.append(reward(item))
        # The reward of a policy that shows every book equally often.
        alike.append(reward(item) / probability / len(weights))
total = DRAWS * ROUNDS

greatest = max(weights.values())
chi_square = 0.0
for rank, (book, weight) in enumerate(weights.items()):
    expected = total * weight
    chi_square += (counts[book] - expected) ** 2 / expected
    if rank < SHOWN:
        print(f"{book:17} weight {weight:.4f} {bar(weight / greatest)}\n"
              f"{'':17} drawn  {counts[book] / total:.4f} "
              f"{bar(counts[book] / total / greatest)}")
print(f"... {len(weights) - SHOWN} more books, {total:,} draws, "
      f"chi-square {chi_square:.1f} with {len(weights) - 1} degrees of freedom")

# Without replacement, each book in a slate counts by its probability of being in it,
# given the threshold kappa (Kool et al. 2019).
slates = []
for seed in range(1, SLATES + 1):
    slates.append(sum(
        weights[item["id"]] * reward(item)
        / math.exp(item["logInclusionGivenThreshold"])
        for item in attend("--sample", "-k", SLATE, "--seed", seed)["items"]))

known = sum(weights[book] * rewards[book] for book in weights)
known_alike = sum(rewards.values()) / len(rewards)
print(f"reward of this policy   {known:.3f}, drawn {mean_and_error(on_policy)},"
      f" from {SLATES} slates of {SLATE} {mean_and_error(slates)}")
print(f"reward of showing alike {known_alike:.3f}, from the same draws "
      f"{mean_and_error(alike)}")
