#!/usr/bin/python3
"""Prints the ratings of a complete table less the mean of their film."""
import csv
import sys

with open(sys.argv[1], newline="") as file:
    ratings = list(csv.DictReader(file))
films = {}
for row in ratings:
    films.setdefault(row["item_id"], []).append(float(row["rating"]))
print("customer_id,item_id,rating")
for row in ratings:
    film = films[row["item_id"]]
    centred = float(row["rating"]) - sum(film) / len(film)
    print(f"{row['customer_id']},{row['item_id']},{centred!r}")
