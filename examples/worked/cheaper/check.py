"""What approximations save, and what they lose."""
from example import floats, norm

ASK = ("contextualize", "--vectors", "tokens.txt", "--score", "cosine",
       "--temperature", "0.1")
TOKENS = 1000


def check(example):
    exact = example.ask(*ASK)
    example.equal("exact says", exact["method"], "ATTENTION_METHOD_EXACT")
    example.equal("exact pairs", int(exact["scoredCount"]), TOKENS ** 2)
    want = [x for output in exact["outputs"] for x in floats(output)]

    def loss(*flags):
        reply = example.ask(*ASK, *flags)
        example.equal(f"{flags} says", reply["method"],
                      "ATTENTION_METHOD_APPROXIMATE")
        got = [x for output in reply["outputs"] for x in floats(output)]
        return (norm([a - b for a, b in zip(got, want)]) / norm(want),
                int(reply["scoredCount"]))

    losses = {rounds: loss("--lsh", rounds) for rounds in (1, 4, 16)}
    for few, many in ((1, 4), (4, 16)):
        example.true(f"{many} rounds lose less than {few}: {losses}",
                     losses[many][0] < losses[few][0])
        example.true(f"and score more pairs: {losses}",
                     losses[many][1] > losses[few][1])
    example.true(f"16 rounds score fewer pairs than all: {losses}",
                 losses[16][1] < TOKENS ** 2)
    means = {rows: loss("--linformer", rows) for rows in (100, 1000)}
    example.equal("pairs of 100 rows", means[100][1], 100 * TOKENS)
    # Rows of a segment each: the sums in another order, in floats.
    example.true(f"as many means as tokens lose nothing: {means}",
                 means[1000][0] < 1e-5)
    example.true(f"fewer do: {means}", means[100][0] > .01)

    # Of a customer's purchases, those of story 9, as of a sequence.
    rank = ("rank", "gifts", "--candidate", "22514", "--history",
            "../two_interests/events.csv.gz", "--customer", "c1146")
    example.equal("exact ranks say", example.ask(*rank)["method"],
                  "ATTENTION_METHOD_EXACT")
    for flags in (("--lsh", 1), ("--linformer", 5)):
        example.equal(f"ranks by {flags} say",
                      example.ask(*rank, *flags)["method"],
                      "ATTENTION_METHOD_APPROXIMATE")
