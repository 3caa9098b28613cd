#!/usr/bin/python3
"""make.py COUNT: writes COUNT items and 10 queries of 64 components, and two models of
the same sizes: an additive network and a dot product of projections."""
import random
import sys

ITEMS, QUERIES, DIM = int(sys.argv[1]), 10, 64
draw = random.Random(1)


def write(name, count, dim, deviation, separator=" "):
    with open(name, "w") as file:
        for _ in range(count):
            file.write(separator.join(f"{draw.gauss(0, deviation):.4f}"
                                      for _ in range(dim)) + "\n")


write("items.txt", ITEMS, DIM, 1)
write("queries.txt", QUERIES, DIM, 1, ",")
for name in ("W", "U", "W_Q_1", "W_K_1"):
    write(f"{name}.txt", DIM, DIM, DIM ** -.5)
write("v.txt", 1, DIM, DIM ** -.5)
with open("ids.txt", "w") as file:
    file.writelines(f"item{i}\n" for i in range(ITEMS))
