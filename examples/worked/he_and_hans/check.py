"""Checks which word attends to which, with and without projections."""
import math

from example import DOUBLE, EPSILON, dot, floats, share_error

WORDS = ("he", "she", "Hans", "Mary")
# Vectors, projections and logits are small integers, which are exact as floats.
# Logits are at most 8 apart.
SHARE = share_error(8)
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
        """Returns max |S - S^T| of the scores, before the temperature."""
        def score(a, b):
            return answers[field][a][b]["similarity"]
        return max(abs(score(a, b) - score(b, a))
                   for a in WORDS for b in WORDS)

    for field in ("roles", "one_sided"):
        for query, key, want in (("he", "Hans", MUCH), ("he", "Mary", LITTLE),
                                 ("Hans", "he", .491006895019)):
            example.weight(f"{field}: {query} to {key}",
                           weight(field, query, key), want, SHARE)
        example.equal(f"{field}: max |S - S^T|", asymmetry(field), 1)
    example.weight("tied: he to he", weight("tied", "he", "he"), MUCH, SHARE)
    example.equal("tied: max |S - S^T|", asymmetry("tied"), 0)
    example.equal("plain: max |S - S^T|", asymmetry("plain"), 0)
    vectors = {"he": (1, 0, 1, 0), "she": (1, 0, 0, 1), "Hans": (0, 1, 1, 0),
               "Mary": (0, 1, 0, 1)}
    # The components of queries and of keys that a field's model keeps.
    for field, of_query, of_key in (("plain", (0, 1, 2, 3), (0, 1, 2, 3)),
                                    ("roles", (0, 2, 3), (1, 2, 3)),
                                    ("tied", (0, 2, 3), (0, 2, 3)),
                                    ("one_sided", (0, 2, 3), (1, 2, 3))):
        for a in WORDS:
            for b in WORDS:
                example.equal(f"{field}: {a} . {b}",
                              answers[field][a][b]["similarity"],
                              sum(vectors[a][i] * vectors[b][j]
                                  for i, j in zip(of_query, of_key)))
    # A layer attends with q W_Q and k W_K, and its values are the vectors. The error
    # of an output is that of its weights and of adding up four products.
    reply = example.ask("contextualize", "--vectors", "vectors.txt", "--layer",
                        "roles", "--score", "dot", "--temperature", .25)
    for word, got in zip(WORDS, reply["outputs"]):
        pronoun, _, *gender = vectors[word]
        e = [math.exp(dot((pronoun, *gender), vectors[key][1:]) / .25)
             for key in WORDS]
        for d, component in enumerate(floats(got)):
            want = dot(e, [vectors[key][d] for key in WORDS]) / sum(e)
            example.weight(f"output of {word}[{d}]", component, want,
                           SHARE + 5 * EPSILON)
    # |P - P^T| / |P| of P = W_Q W_K^T. By roles P has three entries of 1: the
    # male and the female to themselves, which P^T has too, and the pronoun to
    # the proper name. Sums of at most 16 integers and a root, in doubles.
    for model, want in (("roles", (2 / 3) ** .5), ("tied", 0)):
        example.near(f"{model}: asymmetry", example.ask(
            "model", "show", model)["summary"]["asymmetry"], want, 64 * DOUBLE)
