"""Checks that two candidates earn their weights from different purchases."""
import csv
import gzip
import shlex

import npy

DIM = 64
TEMPERATURE = 0.1
# A customer, and candidates with the word of the purchases that favour them.
STORIES = (("c1146", {"22514": "GARDEN", "22966": "COOKIE"}),
           ("c1491", {"22726": "CLOCK", "22698": "REGENCY TEACUP"}))


def check(example):
    with open(example.work / "items.csv", newline="") as file:
        names = {row["item_id"]: row["name"] for row in csv.DictReader(file)}
    numbers = npy.read(example.work / "names/keys.npy")
    ids = (example.work / "names/ids.txt").read_text().split()
    keys = {item: numbers[DIM * i:DIM * (i + 1)] for i, item in enumerate(ids)}
    with gzip.open(example.work / "events.csv.gz", "rt", newline="") as file:
        events = [row for row in csv.DictReader(file)
                  if row["customer_id"] in dict(STORIES)]
    for customer, candidates in STORIES:
        bought = [row["item_id"] for row in events
                  if row["customer_id"] == customer]
        arguments = [word for item in candidates
                     for word in ("--candidate", item)]
        # Columns are the events that a candidate names. The weights that the other
        # candidate gives them are drawn too, although it does not name them.
        line = shlex.join(["attendant", "rank", "gifts", *arguments, "--history",
                           "events.csv.gz", "--customer", customer,
                           "--temperature", str(TEMPERATURE), "--because", "1",
                           "--svg=matrix"])
        example.check_picture(line, example.shell(line))
        example.true("a picture of no events is refused", "--because 0"
                     in example.refusal(line.replace("--because 1",
                                                     "--because 0")))
        reply = example.ask("rank", "gifts", *arguments, "--history",
                            "events.csv.gz", "--customer", customer,
                            "--temperature", TEMPERATURE, "--because", 100)
        for candidate in reply["candidates"]:
            item = candidate["id"]
            weights, share = example.interest(
                f"{customer}: {item}", candidate, keys[item],
                [keys[event] for event in bought], TEMPERATURE)
            got = {event["index"]: event["weight"]
                   for event in candidate["events"]}
            example.equal(f"{customer}: events that {item} looks at",
                          sorted(got), list(range(len(bought))))
            for index, weight in enumerate(weights):
                example.weight(f"{customer}: {item} on {bought[index]}",
                               got[index], weight, share)
            word = candidates[item]
            best = max(got, key=got.get)
            example.true(f"{names[item]} looks at {names[bought[best]]} first",
                         word in names[bought[best]])
            of_word = sum(weight for index, weight in got.items()
                          if word in names[bought[index]])
            for other in candidates.values():
                if other != word:
                    of_other = sum(weight for index, weight in got.items()
                                   if other in names[bought[index]])
                    example.true(
                        f"{names[item]}: {word} {of_word:.2f}, {other} "
                        f"{of_other:.2f}", of_word > 3 * of_other)
        scores = [candidate["score"] for candidate in reply["candidates"]]
        example.equal(f"{customer}: the best first", scores,
                      sorted(scores, reverse=True))
