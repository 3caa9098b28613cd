"""Keys are words, values are pictures."""
import csv

import npy
from example import EPSILON

PIXELS = 784


def check(example):
    values = npy.read(example.work / "images.npy")
    with open(example.work / "classes.csv", newline="") as file:
        classes = [row["class"] for row in csv.DictReader(file)]
    ids = (example.work / "ids.txt").read_text().split()
    row_of = {item: i for i, item in enumerate(ids)}

    reply = example.ask("attend", "fashion", "--text", "ankle boot",
                        "--weights", "catalog", "--pool", "catalog",
                        "-k", len(ids))
    weights = {item["id"]: item["weight"] for item in reply["items"]}
    boots = [i for i, name in enumerate(classes) if name == "Ankle boot"]
    for item in reply["items"][:len(boots)]:
        example.equal("an ankle boot finds", classes[row_of[item["id"]]],
                      "Ankle boot")
    on_boots = sum(weights[ids[i]] for i in boots)
    example.true(f"weight on boots: {on_boots}", on_boots > .99)

    # The value is the weighted mean of all images. Pixels are at most 1 and rounded
    # to floats, like the parts of sums.
    want = [0.0] * PIXELS
    for item, weight in weights.items():
        offset = row_of[item] * PIXELS
        for d in range(PIXELS):
            want[d] += weight * values[offset + d]
    pooled = reply["pooledValue"]["values"]
    example.all_near("pooled value", pooled, want, 4 * EPSILON)

    terminal = example.shell("attendant attend fashion --text 'ankle boot' "
                             "--weights catalog --image 28")
    # 28 rows, and a line with the meaning of the shades.
    greatest = max(pooled)
    for y, line in enumerate(terminal.splitlines()[-29:-1]):
        line = line.ljust(56)
        for x in range(28):
            level = " ░▒▓█".index(line[2 * x])
            example.true(f"shade at {x}, {y}", abs(
                level / 4 - pooled[28 * y + x] / greatest) <= .125 + 1e-6)
