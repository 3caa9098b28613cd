"""Checks latent semantic indexing and PCA as attention with one learned matrix."""
import csv

import npy
from example import DOUBLE, EPSILON, norm

COSINE = 0.9925794247632609  # of P8 and P9 through V_2
SINGULAR_VALUES = (12.481014693580397, 9.508614056636778, 1.345559712744026)
CENTRED_SINGULAR_VALUES = (10.492499, 4.089686, 1.324147)


def singular_values(example, fit):
    return list(npy.read(example.work / fit / "singular_values.npy"))


def learn(table, rank):
    """Returns the matrix W [films, rank] without a bias that minimises |X - X W W^T|
    in the Frobenius norm, by gradient descent. X W W^T is attention's q W (W k)^T
    with one matrix for queries and keys."""
    n = len(table[0])
    s = [[sum(row[i] * row[j] for row in table) for j in range(n)]
         for i in range(n)]
    w = [[0.1 * (i + 1), 0.1 * (n - i) * (-1) ** i][:rank] for i in range(n)]

    def product(a, b):
        return [[sum(x * y for x, y in zip(row, column))
                 for column in zip(*b)] for row in a]
    for _ in range(600):
        # The gradient of |X - X P|^2 with P = W W^T, S = X^T X, is
        # -2 ((2 S - S P - P S) W).
        p = product(w, list(zip(*w)))
        sp = product(s, p)
        g = [[2 * s[i][j] - sp[i][j] - sp[j][i] for j in range(n)]
             for i in range(n)]
        step = product(g, w)
        w = [[w[i][c] + .0015 * step[i][c] for c in range(rank)]
             for i in range(n)]
    return product(w, list(zip(*w)))


def loss(table, projection):
    """Returns |X - X P| in the Frobenius norm."""
    return norm([x - sum(a * b for a, b in zip(row, column))
                 for row in table for x, column in zip(row, zip(*projection))])


def check(example):
    # The fit uses doubles: some 7 x 5 roundings of the greatest.
    found = singular_values(example, "lsi")
    example.all_near("singular values", found[:2], SINGULAR_VALUES[:2],
                     35 * DOUBLE * SINGULAR_VALUES[0])
    # To the printed digits.
    example.all_near("of centred columns", singular_values(example, "pca"),
                     CENTRED_SINGULAR_VALUES, 5e-7)

    with open(example.folder / "ratings.csv", newline="") as file:
        ratings = [float(row["rating"]) for row in csv.DictReader(file)]
    table = [ratings[i:i + 5] for i in range(0, 35, 5)]
    # Two dimensions lose the third singular value.
    learnt = learn(table, 2)
    example.near("Frobenius loss", loss(table, learnt), SINGULAR_VALUES[2],
                 35 * DOUBLE * SINGULAR_VALUES[0])
    means = [sum(column) / len(table) for column in zip(*table)]
    centred = [[x - mean for x, mean in zip(row, means)] for row in table]
    example.near("of centred columns", loss(centred, learn(centred, 2)),
                 CENTRED_SINGULAR_VALUES[2], 5e-7)
    p8, p9 = (5, 0, 0, 0, 0), (0, 4, 5, 0, 0)

    def latent(a, b):
        return sum(a[i] * learnt[i][j] * b[j]
                   for i in range(5) for j in range(5))
    # A projection is shorter than its vector, and errors are shares of the vector.
    shrunk = [norm(row) / latent(row, row) ** .5 for row in (p8, p9)]
    # Errors of a gradient's sums of 5 products of sums of 7, and of 25 products.
    example.near("cosine through the matrix learnt", latent(p8, p9) /
                 (latent(p8, p8) * latent(p9, p9)) ** .5, COSINE,
                 2 * (35 + 25) * DOUBLE * shrunk[0] * shrunk[1])
    for field, want in (("raw", 0.0), ("latent", COSINE)):
        reply = example.ask("attend", "raters", "--field", field, "--vector",
                            "0,4,5,0,0")
        got = {item["id"]: item["similarity"] for item in reply["items"]}
        # Without a common film all products are 0. Otherwise each side has rounded
        # inputs, products and sums of five, with columns of norm 1, and is
        # normalised; a cosine of two components takes ten roundings.
        example.near(f"{field}: P9 and P8", got["P8"], want, 0 if want == 0 else
                     (7 * 2 ** .5 * sum(shrunk) + 10) * EPSILON)
    example.equal("the model is mutual", example.ask(
        "model", "show", "films")["summary"]["asymmetry"], 0)
