"""Checks what approximations save and lose."""
import array
import csv
import gzip
import math

import npy
from example import EPSILON, cosine, dot, floats, norm, rows, share_error

ASK = ("contextualize", "--vectors", "tokens.txt", "--score", "cosine",
       "--temperature", "0.1")
TOKENS = 1000
DIM = 32
FEW = ("contextualize", "--vectors", "few.txt", "--score", "cosine",
       "--temperature", "0.2")


def logit_error(temperature):
    """Returns the error of a logit, a cosine of floats: its products and two norms."""
    return 3 * DIM * EPSILON / temperature


def attend(query, keys):
    """Returns the weights of keys by their cosines, and their mean, in doubles."""
    e = [math.exp(cosine(query, key) / .2) for key in keys]
    weights = [x / sum(e) for x in e]
    return weights, [sum(w * key[d] for w, key in zip(weights, keys))
                     for d in range(DIM)]


# Cosines are at most 2 apart.
SHARE = share_error(2 / .2, logit_error(.2))


def check_output(example, what, got, want, count):
    """Compares an output with that of `attend` for `count` keys."""
    # The errors are those of weights, and of adding up `count` products. Components
    # are at most 1.
    example.all_near(what, got, want, SHARE + (count + 1) * EPSILON)


def check_buckets(example, tokens, rounds):
    """Checks that a token attends, as in exact attention, to the tokens that share a
    bucket with it, and that these are buckets."""
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
            # In one round, tokens that share a bucket with j share it with i.
            example.true(f"{j} shares the bucket of {i}",
                         mates[j] == mates[i] if rounds == 1 else i in mates[j])
        of = sorted(mates[i])
        shares, output = attend(token, [tokens[j] for j in of])
        for j, share in zip(of, shares):
            example.weight(f"{rounds} rounds: {i} on {j}", weights[i][j], share,
                           SHARE)
        check_output(example, f"{rounds} rounds: output {i}",
                     floats(reply["outputs"][i]), output, len(of))


def segment_means(tokens, count):
    ends = [len(tokens) * i // count for i in range(count + 1)]
    return [[sum(column) / (end - start) for column in zip(*tokens[start:end])]
            for start, end in zip(ends, ends[1:])]


def check_means(example, tokens, count):
    """Checks that tokens attend to the means of segments of n / count tokens."""
    reply = example.ask(*FEW, "--linformer", count)
    means = segment_means(tokens, count)
    for i, token in enumerate(tokens):
        check_output(example, f"{count} means: output {i}",
                     floats(reply["outputs"][i]), attend(token, means)[1],
                     count)


# Uses of random numbers: core/base/random.h.
HASH_DIRECTIONS = 0x6c73682d64697273
ROW_REDUCTION = 0x6c696e666f726d72


def mix(bits):
    """The finaliser of SplitMix64."""
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9 % 2 ** 64
    bits = (bits ^ bits >> 27) * 0x94d049bb133111eb % 2 ** 64
    return bits ^ bits >> 31


def random_bits(seed, counter):
    return mix(mix((seed + 0x9e3779b97f4a7c15) % 2 ** 64) ^ counter)


def normals(use, seed, first, count):
    """Standard normal variables by Box and Muller, as floats."""
    stream = random_bits(use, seed)
    drawn = array.array("f")
    for i in range(first, first + count, 2):
        u, v = (2 ** -53 * (random_bits(stream, at) >> 11) for at in (i, i + 1))
        radius, angle = math.sqrt(-2 * math.log1p(-u)), 2 * math.pi * v
        drawn.extend((radius * math.cos(angle), radius * math.sin(angle)))
    return drawn


def softmax_output(query, keys, values):
    """Returns attention by the cosines of normalised vectors, at temperature .1."""
    e = [math.exp(dot(query, key) / .1) for key in keys]
    return [dot(e, column) / sum(e) for column in zip(*values)]


def check_hashing(example, tokens, rounds, seed):
    """Checks that all buckets, and some outputs, equal those of this program: in each
    round the position of the greatest of [x R; -x R]."""
    reply = example.ask(*ASK, "--lsh", rounds, "--lsh-seed", seed)
    half = TOKENS // 128  # of two buckets for 128 keys
    directions = rows(normals(HASH_DIRECTIONS, seed, 0, rounds * half * DIM),
                      DIM)
    mates = [set() for _ in tokens]
    for r in range(rounds):
        buckets = {}
        for i, token in enumerate(tokens):
            dots = [dot(token, direction)
                    for direction in directions[r * half:(r + 1) * half]]
            best, second = sorted(range(half), key=lambda d: -abs(dots[d]))[:2]
            # Otherwise roundings of DIM products and their sum would choose.
            sizes = sum(abs(x * y) for d in (best, second)
                        for x, y in zip(token, directions[r * half + d]))
            example.true(f"round {r}: token {i} has one bucket",
                         abs(dots[best]) - abs(dots[second])
                         > (DIM + 1) * EPSILON * sizes)
            buckets.setdefault((best, dots[best] < 0), set()).add(i)
        for bucket in buckets.values():
            for i in bucket:
                mates[i] |= bucket
    example.equal(f"{rounds} rounds of seed {seed}: pairs",
                  int(reply["scoredCount"]), sum(map(len, mates)))
    for i in range(0, TOKENS, 50):
        met = [tokens[j] for j in sorted(mates[i])]
        example.all_near(f"{rounds} rounds of seed {seed}: output {i}",
                         floats(reply["outputs"][i]),
                         softmax_output(tokens[i], met, met),
                         share_error(2 / .1, logit_error(.1))
                         + (len(met) + 1) * EPSILON)


def check_combinations(example, tokens, count, seed, more=()):
    """Checks that tokens attend to random combinations of all tokens, with factors of
    variance 1 / count: by cosines, and so to their directions."""
    reply = example.ask(*ASK, "--linformer", count, "--linformer-random", *more)
    columns = list(zip(*tokens))
    values = [[dot(row, column) / count ** .5 for column in columns]
              for row in (normals(ROW_REDUCTION, seed, r * TOKENS, TOKENS)
                          for r in range(count))]
    keys = [[x / norm(value) for x in value] for value in values]
    greatest = max(map(norm, values))
    for i in range(0, TOKENS, 50):
        # Combinations are rounded once. Weights then have the errors of any keys, and
        # sums add numbers up to the greatest.
        example.all_near(f"{count} combinations of seed {seed}: output {i}",
                         floats(reply["outputs"][i]),
                         softmax_output(tokens[i], keys, values),
                         greatest * (share_error(2 / .1, logit_error(.1))
                                     + (count + 1) * EPSILON))


RANK = ("rank", "gifts", "--candidate", "22514", "--candidate", "22966",
        "--history", "../two_interests/events.csv.gz", "--customer", "c1146",
        "--temperature", .1)
GIFT_DIM = 64


def check_rank_buckets(example, candidates, bought, rounds, buckets, *more):
    """Checks that candidates attend to the purchases that share a bucket with them in
    some round, or to all if none does, and that a reply names those."""
    reply = example.ask(*RANK, "--lsh", rounds, *more, "--because", 100)
    example.equal("ranks by LSH say", reply["method"],
                  "ATTENTION_METHOD_APPROXIMATE")
    half = buckets // 2
    directions = rows(normals(HASH_DIRECTIONS, 1, 0,
                              rounds * half * GIFT_DIM), GIFT_DIM)

    def bucket(vector, r):
        dots = [dot(vector, direction)
                for direction in directions[r * half:(r + 1) * half]]
        best = max(range(half), key=lambda d: abs(dots[d]))
        return best, dots[best] < 0

    pairs = 0
    for got in reply["candidates"]:
        candidate = candidates[got["id"]]
        met = [j for j, key in enumerate(bought)
               if any(bucket(key, r) == bucket(candidate, r)
                      for r in range(rounds))] or list(range(len(bought)))
        pairs += len(met)
        what = f"{rounds} rounds: {got['id']}"
        said = {event["index"]: event["weight"] for event in got["events"]}
        example.equal(f"{what} attends to", sorted(said), met)
        weights, share = example.interest(what, got, candidate,
                                          [bought[j] for j in met], .1)
        for j, weight in zip(met, weights):
            example.weight(f"{what} on {j}", said[j], weight, share)
    example.equal(f"{rounds} rounds: pairs of ranks",
                  int(reply["scoredCount"]), pairs)


def check_rank_means(example, candidates, bought, count):
    """Checks that candidates attend to the means of segments of the purchases."""
    reply = example.ask(*RANK, "--linformer", count)
    example.equal("ranks by Linformer say", reply["method"],
                  "ATTENTION_METHOD_APPROXIMATE")
    means = segment_means(bought, count)
    for got in reply["candidates"]:
        example.interest(f"{count} means: {got['id']}", got,
                         candidates[got["id"]], means, .1)


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
    # Each row is a token, and equal up to the errors of both. An output is a mean of
    # tokens of norm 1: its error is its weights' share and that of adding up 1,000
    # products. The error of all outputs together is sqrt(1,000) times as much.
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

    tokens = [[x / norm(token) for x in token] for token in (
        [float(x) for x in line.split()] for line in
        (example.work / "tokens.txt").read_text().splitlines())]
    # With these seeds no token is between two buckets.
    check_hashing(example, tokens, 1, 7)
    check_hashing(example, tokens, 4, 2)
    check_combinations(example, tokens, 64, 1)
    check_combinations(example, tokens, 64, 2, ("--linformer-seed", 2))

    # More weights than a picture has elements for.
    example.shell("head -70 tokens.txt > many.txt")
    for kind in ("matrix", "lines"):
        line = ("attendant contextualize --vectors many.txt --score cosine "
                f"--temperature 0.1 --svg={kind}")
        example.check_picture(line, example.shell(line))
        example.true("more tokens than have weights are refused",
                     "--svg: got 513 tokens, want at most 512"
                     in example.refusal("head -513 tokens.txt > longer.txt; "
                                        + line.replace("many", "longer")))

    # The purchases of story 9's customer, as a sequence.
    gifts = example.work.parent / "two_interests"
    numbers = rows(npy.read(gifts / "names/keys.npy"), GIFT_DIM)
    keys = dict(zip((gifts / "names/ids.txt").read_text().split(), numbers))
    with gzip.open(gifts / "events.csv.gz", "rt", newline="") as file:
        bought = [keys[row["item_id"]] for row in csv.DictReader(file)
                  if row["customer_id"] == "c1146"]
    candidates = {item: keys[item] for item in ("22514", "22966")}
    example.equal("exact ranks say", example.ask(*RANK)["method"],
                  "ATTENTION_METHOD_EXACT")
    # The default for so few events is two buckets.
    check_rank_buckets(example, candidates, bought, 1, 2)
    check_rank_buckets(example, candidates, bought, 2, 4, "--lsh-buckets", 4)
    check_rank_means(example, candidates, bought, 5)
