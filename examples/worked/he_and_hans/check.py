"""Who looks for whom, with and without projections."""
from example import share_error

WORDS = ("he", "she", "Hans", "Mary")
# Vectors, projections and logits are small integers, which floats hold
# exactly. Logits lie 8 apart.
TOLERANCE = share_error(8)
MUCH = .964351083825  # e^8 / (e^8 + 2 e^4 + 1)
LITTLE = .017662706213  # e^4 / (e^8 + 2 e^4 + 1)


def check(example):
    def attend(field, word):
        reply = example.ask("attend", "people", "--field", field, "--like",
                            word, "--include-examples", "--weights", "catalog")
        return {item["id"]: item for item in reply["items"]}

    answers = {field: {word: attend(field, word) for word in WORDS}
               for field in ("plain", "roles", "tied", "one_sided")}

    def weight(field, query, key):
        return answers[field][query][key]["weight"]

    def asymmetry(field):
        """max |S - S^T| of the scores, before the temperature."""
        def score(a, b):
            return answers[field][a][b].get("similarity", 0)
        return max(abs(score(a, b) - score(b, a))
                   for a in WORDS for b in WORDS)

    for field in ("roles", "one_sided"):
        for query, key, want in (("he", "Hans", MUCH), ("he", "Mary", LITTLE),
                                 ("Hans", "he", .491006895019)):
            example.near(f"{field}: {query} to {key}",
                         weight(field, query, key), want, want * TOLERANCE)
        example.equal(f"{field}: max |S - S^T|", asymmetry(field), 1)
    example.near("tied: he to he", weight("tied", "he", "he"), MUCH,
                 MUCH * TOLERANCE)
    example.equal("tied: max |S - S^T|", asymmetry("tied"), 0)
    example.equal("plain: max |S - S^T|", asymmetry("plain"), 0)
    vectors = {"he": (1, 0, 1, 0), "she": (1, 0, 0, 1), "Hans": (0, 1, 1, 0),
               "Mary": (0, 1, 0, 1)}
    for a in WORDS:
        for b in WORDS:
            example.equal(f"plain: {a} . {b}",
                          answers["plain"][a][b].get("similarity", 0),
                          sum(x * y for x, y in zip(vectors[a], vectors[b])))
    for model, mutual in (("roles", False), ("tied", True)):
        heads = example.ask("model", "show", model)
        example.true(f"{model}: mutual is {mutual}",
                     (asymmetry_of(heads) == 0) == mutual)


def asymmetry_of(reply):
    """The asymmetry that `attendant model show` reports, 0 if it is left out."""
    found = []

    def walk(value):
        if isinstance(value, dict):
            for key, inner in value.items():
                if key.lower().endswith("asymmetry"):
                    found.append(inner)
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)
    walk(reply)
    return max(found, default=0)
