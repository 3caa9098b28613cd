#!/usr/bin/python3
"""The first 100 test images of each class of Fashion-MNIST, from Debian's
dataset-fashion-mnist (MIT licence, Zalando SE): images.npy [1000, 784] with
values in [0, 1], and classes.csv, what each is called."""
import array
import csv
import gzip
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import npy  # noqa: E402

FOLDER = pathlib.Path("/usr/share/datasets/fashion-mnist")
NAMES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal",
         "Shirt", "Sneaker", "Bag", "Ankle boot")
PIXELS = 28 * 28
EACH = 100

if not FOLDER.exists():
    print("Debian's dataset-fashion-mnist is not installed")
    sys.exit(77)
labels = gzip.open(FOLDER / "t10k-labels-idx1-ubyte.gz").read()[8:]
images = gzip.open(FOLDER / "t10k-images-idx3-ubyte.gz").read()[16:]

taken = dict.fromkeys(range(len(NAMES)), 0)
rows = []
for i, label in enumerate(labels):
    if taken[label] < EACH:
        taken[label] += 1
        rows.append((i, label))
values = array.array("f")
for i, _ in rows:
    values.extend(p / 255 for p in images[i * PIXELS:(i + 1) * PIXELS])
npy.write("images.npy", values, (len(rows), PIXELS))
with open("classes.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(("item_id", "class"))
    writer.writerows((f"test{i}", NAMES[label]) for i, label in rows)
with open("ids.txt", "w") as file:
    file.writelines(f"test{i}\n" for i, _ in rows)
