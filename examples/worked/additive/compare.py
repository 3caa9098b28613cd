#!/usr/bin/python3
"""Sends the same queries to the same items by additive attention and by a dot
product, and prints what each had to evaluate.

    compare.py          counts, which are the same on every machine
    compare.py --time   also the engine's time, the median of 20 rounds. With
                        100,000 items it is mainly that of the scores
"""
import json
import statistics
import subprocess
import sys

QUERIES = 10


def ask(*arguments):
    result = subprocess.run(["attendant", "--json", *map(str, arguments)],
                            stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(result.returncode)
    return json.loads(result.stdout)


def projected_keys(field):
    for index in ask("catalog", "describe", "scored")["catalog"]["indexes"]:
        if index["keyField"] == field:
            return int(index["projectedKeyCount"])
    raise KeyError(field)


timed = "--time" in sys.argv
queries = [line.strip() for line in open("queries.txt")][:QUERIES]
print("           projections          scores")
for field, pair in (("additive", "v . tanh(q' + k')"), ("dot", "q' . k'")):
    scored = projections = 0
    nanoseconds = []  # for each score
    for query in queries * (20 if timed else 1):
        stats = ask("attend", "scored", "--field", field, "--weights",
                    "catalog", "--exact", "--pool", "none", "--vector",
                    query)["stats"]
        if len(nanoseconds) < len(queries):
            scored += int(stats["scoredCount"])
            projections += int(stats["projectedQueryCount"])
        nanoseconds.append(1e9 * float(stats["computeDuration"].rstrip("s"))
                           / int(stats["scoredCount"]))
    keys = projected_keys(field)
    print(f"{field:9}  {projections} + {keys:,} = {projections + keys:,}"
          f"  {scored:,} x {pair}")
    if timed:
        print(f"{'':9}  {statistics.median(nanoseconds):.0f} ns a score")
