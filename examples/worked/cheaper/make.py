#!/usr/bin/python3
"""Writes tokens of norm 1 and 32 components in clusters: 1,000 scattered over the
sequence, and 24 with clusters together."""
import random

DIM = 32
draw = random.Random(1)


def write(name, clusters):
    """Writes a token a line, from the clusters at `clusters`."""
    centres = [[draw.gauss(0, 1) for _ in range(DIM)]
               for _ in range(max(clusters) + 1)]
    with open(name, "w") as file:
        for cluster in clusters:
            token = [c + draw.gauss(0, .5) for c in centres[cluster]]
            norm = sum(x * x for x in token) ** .5
            print(*(f"{x / norm:.5f}" for x in token), file=file)


write("tokens.txt", [i % 40 for i in range(1000)])
write("few.txt", [i // 8 for i in range(24)])
