"""What approximations save, and what they lose."""
import math

from example import EPSILON, cosine, floats, norm, rows, share_error

ASK = ("contextualize", "--vectors", "tokens.txt", "--score", "cosine",
       "--temperature", "0.1")
TOKENS = 1000
DIM = 32
FEW = ("contextualize", "--vectors", "few.txt", "--score", "cosine",
       "--temperature", "0.2")


def logit_error(temperature):
    """Of a cosine of floats: its products and two norms."""
    return 3 * DIM * EPSILON / temperature


def attend(query, keys):
    """The weights of keys, and their mean: by their cosines, in doubles."""
    e = [math.exp(cosine(query, key) / .2) for key in keys]
    weights = [x / sum(e) for x in e]
    return weights, [sum(w * key[d] for w, key in zip(weights, keys))
                     for d in range(DIM)]


# Cosines lie 2 apart at most.
SHARE = share_error(2 / .2, logit_error(.2))


def check_output(example, what, got, want, count):
    """Against what `attend` gives of so many keys."""
    # Weights are off by their share, a sum by adding up `count` products;
    # components are at most 1.
    example.all_near(what, got, want, SHARE + (count + 1) * EPSILON)


def check_buckets(example, tokens, rounds):
    """That a token attends, as in exact attention, to those that share a bucket
    with it, and that these are buckets."""
    reply = example.ask(*FEW, "--lsh", rounds, "--lsh-buckets", 8, "--weights")
    (head,) = reply["headWeights"]
    weights = rows(head["weights"], head["columnCount"])
    mates = [{j for j, weight in enumerate(row) if weight > 0}
             for row in weights]
    example.equal(f"{rounds} rounds: pairs", int(reply["scoredCount"]),
                  sum(map(len, mates)))
    example.true(f"{rounds} rounds leave some out",
                 sum(map(len, mates)) < len(tokens) ** 2)
    for i, token in enumerate(tokens):
        example.true(f"{i} shares its own bucket", i in mates[i])
        for j in mates[i]:
            # Of one round, who shares a bucket with j does with i.
            example.true(f"{j} shares the bucket of {i}",
                         mates[j] == mates[i] if rounds == 1 else i in mates[j])
        of = sorted(mates[i])
        shares, output = attend(token, [tokens[j] for j in of])
        for j, share in zip(of, shares):
            example.weight(f"{rounds} rounds: {i} on {j}", weights[i][j], share,
                           SHARE)
        check_output(example, f"{rounds} rounds: output {i}",
                     floats(reply["outputs"][i]), output, len(of))


def check_means(example, tokens, count):
    """That tokens attend to the means of segments, each n / count of them."""
    reply = example.ask(*FEW, "--linformer", count)
    ends = [len(tokens) * i // count for i in range(count + 1)]
    means = [[sum(column) / (end - start)
              for column in zip(*tokens[start:end])]
             for start, end in zip(ends, ends[1:])]
    for i, token in enumerate(tokens):
        check_output(example, f"{count} means: output {i}",
                     floats(reply["outputs"][i]), attend(token, means)[1],
                     count)


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
    # Each row is a token: the same, but for what both are off by. An output,
    # as a mean of tokens of norm 1, is off by its weights' share and by adding
    # up 1,000 products; all outputs together by sqrt(1,000) times as much.
    rounding = (2 * TOKENS ** .5 / norm(want)
                * (share_error(2 / .1, logit_error(.1)) + TOKENS * EPSILON))
    example.true(f"as many means as tokens lose nothing: {means}, {rounding}",
                 means[1000][0] <= rounding)
    example.true(f"fewer do: {means}", means[100][0] > rounding)

    tokens = [[float(x) for x in line.split()] for line in
              (example.work / "few.txt").read_text().splitlines()]
    for rounds in (1, 2):
        check_buckets(example, tokens, rounds)
    for count in (5, 6, 24):
        check_means(example, tokens, count)

    # Of a customer's purchases, those of story 9, as of a sequence.
    rank = ("rank", "gifts", "--candidate", "22514", "--history",
            "../two_interests/events.csv.gz", "--customer", "c1146")
    example.equal("exact ranks say", example.ask(*rank)["method"],
                  "ATTENTION_METHOD_EXACT")
    for flags in (("--lsh", 1), ("--linformer", 5)):
        example.equal(f"ranks by {flags} say",
                      example.ask(*rank, *flags)["method"],
                      "ATTENTION_METHOD_APPROXIMATE")
