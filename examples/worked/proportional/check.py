"""Draws against weights. The seeds are fixed, but what they draw may change
with the machine's last digits, so that all is checked as chance allows."""
import re


def check(example):
    text = example.said.get("./draws.py") or example.shell("./draws.py")
    # A chi-square of k degrees of freedom is above k + 6 sqrt(2 k), some six
    # standard deviations, once in a million tries.
    found, freedom = map(float, re.search(
        r"chi-square ([\d.]+) with (\d+)", text).groups())
    example.true(f"counts follow weights: chi-square {found}",
                 found < freedom + 6 * (2 * freedom) ** .5)
    truth, drawn, slates = map(float, re.search(
        r"reward of this policy +([\d.]+), drawn ([\d.]+), .*ten ([\d.]+)",
        text).groups())
    # Titles have 2 to 48 letters, with a deviation below 12: six standard
    # errors of 20,000 draws, and of 20 slates of ten.
    example.near("reward of this policy", drawn, truth, 6 * 12 / 20000 ** .5)
    example.near("from slates", slates, truth, 6 * 12 / 20 ** .5)
