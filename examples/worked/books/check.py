"""A search engine of books: a lookup, a weighted answer, and temperatures between."""
import base64
import csv

from example import EPSILON, share_error

QUERY = ("attend", "books", "--field", "title", "--text", "The Alchemist")


def check_heads(example, text, count):
    """Checks that a head is attention over its field, that an item's weight is the
    mean over heads, and that the head with its greatest weight earned it."""
    fields = ("title", "description")
    everything = ("--text", text, "--weights", "catalog", "-k", count)
    items = example.ask("attend", "books", "--head", "title=0.1", "--head",
                        "description=0.1", "--by-head", *everything)["items"]
    example.equal(f"'{text}': books", len(items), count)
    alone, shares = [], []
    for field in fields:
        of_field = example.ask("attend", "books", "--field", field,
                               "--temperature", .1, *everything)["items"]
        alone.append({item["id"]: item["weight"] for item in of_field})
        # Both have this error.
        shares.append(2 * share_error(of_field[0]["logit"]
                                      - of_field[-1]["logit"]))
    for item in items:
        what = f"'{text}', {item['id']}"
        heads = item["headWeights"]
        for field, got, want, share in zip(fields, heads, alone, shares):
            example.weight(f"{what}: {field}", got, want[item["id"]], share)
        # Two floats are added and halved.
        example.weight(f"{what}: mean", item["weight"], sum(heads) / 2,
                       2 * EPSILON)
        example.equal(f"{what}: earned by", item["keyField"],
                      fields[heads.index(max(heads))])


def check(example):
    with open(example.folder / "books.csv", newline="") as file:
        books = {row["id"]: row for row in csv.DictReader(file)}
    example.true("50 books or more", len(books) >= 50)

    (hard,) = example.ask(*QUERY, "--hard", "--opaque")["items"]
    example.equal("hard finds", hard["id"], "alchemist")
    example.equal("hard weighs", hard["weight"], 1)
    example.equal("its value, byte for byte",
                  base64.b64decode(hard["opaqueValue"]),
                  books["alchemist"]["description"].encode())

    everything = ("--weights", "catalog", "-k", len(books))
    soft = example.ask(*QUERY, *everything, "--temperature", .3)["items"]
    example.equal("soft gives every book", {item["id"] for item in soft},
                  set(books))
    example.equal("the same first", soft[0]["id"], "alchemist")
    gap = soft[0]["logit"] - soft[-1]["logit"]
    example.weight("weights sum to", sum(item["weight"] for item in soft), 1,
                   share_error(gap))
    before = soft[0]["weight"]
    example.true("soft is not hard", before < .9)
    for temperature in (.2, .15, .1, .07):
        sharp = example.ask(*QUERY, *everything, "--temperature",
                            temperature)["items"]
        example.equal("still first", sharp[0]["id"], "alchemist")
        weight = sharp[0]["weight"]
        example.true(f"the colder, the harder: {weight} at {temperature}",
                     before < weight < 1)
        before = weight
    cold = example.ask(*QUERY, *everything, "--temperature", 1e-4)["items"]
    example.equal("in the limit", (cold[0]["id"], cold[0]["weight"]),
                  ("alchemist", 1))

    # Each field earns what it knows. (Among the descriptions, "a chemist" is nearest
    # to an alchemist.)
    for text, field, book in (
            ("The Alchemist", "title", "alchemist"),
            ("The Alchemist", "description", "invisible-man"),
            ("hunting a white whale", "description", "moby-dick")):
        reply = example.ask("attend", "books", "--head", "title=0.1", "--head",
                            "description=0.1", "--text", text)
        earned = {item["id"]: item["keyField"] for item in reply["items"]}
        example.true(f"'{text}' finds {book}",
                     book in [item["id"] for item in reply["items"][:2]])
        example.equal(f"'{text}' earned by", earned.get(book), field)
    for text in ("The Alchemist", "hunting a white whale"):
        check_heads(example, text, len(books))
