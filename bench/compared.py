"""What the cells say that bench/compare.py keeps: of tables, plots and bars."""

import math
import statistics

# What rivals are compared with, tuned by the recall that it is asked for; until
# 2026-11-25 by lists.
OURS = ("ivf tuned", "ivf")
RECALLS = (.95, .99)
# What is compared with FAISS Flat.
EXACT_ANSWERS = ("ivf proven", "ivf exact", "flat exact")
# When rivals were built on a machine that had other work: their seconds are no
# measure of ours.
BUSY_BUILDS = [("mixture-1m", "2026-11-20")]


def rates(cell, kind, metric):
    return [sample[metric] for sample in cell[kind]]


def ratios(ours, theirs, kind, metric):
    """Of each round, sorted."""
    return sorted(a / b for a, b in zip(rates(ours, kind, metric),
                                        rates(theirs, kind, metric)))


def fastest(cells, kind, metric):
    return max(cells, key=lambda cell: statistics.median(
        rates(cell, kind, metric)), default=None)


def measured(cells, engine, recall=None):
    return [cell for cell in cells
            if cell["engine"] == engine and cell["single"]
            and (recall is None or cell["wanted_recall"] == recall)]


def bytes_per_item(cell):
    return cell["resident_bytes"] / cell["keys"]


def comparison_rows(result):
    """(recall, kind, rival, ours, theirs, ratios) of one set."""
    metric = result["metric"]
    recalls = sorted({cell["wanted_recall"] for cell in result["cells"]})
    for recall in recalls:
        ours = [cell for cell in measured(result["cells"], "attendant", recall)
                if cell["configuration"] in OURS]
        for kind in ("single", "batch"):
            for rival in ("faiss", "hnswlib"):
                theirs = fastest(measured(result["cells"], rival, recall),
                                 kind, metric)
                if ours and theirs:
                    yield (recall, kind, rival, ours[0], theirs,
                           ratios(ours[0], theirs, kind, metric))


def exact_rows(result):
    """(kind, ours, FAISS's, ratios) of one set."""
    metric = result["metric"]
    for kind in ("single", "batch"):
        theirs = fastest(measured(result["cells"], "faiss"), kind, metric)
        for ours in measured(result["cells"], "attendant"):
            if theirs:
                yield kind, ours, theirs, ratios(ours, theirs, kind, metric)


def build_seconds(result, engine):
    """The least of an engine's; None: it built nothing."""
    return min((cell["build_seconds"] for cell in result["cells"]
                if cell["engine"] == engine and "build_seconds" in cell),
               default=None)


def build_share(name, result, rival):
    """Of a rival's seconds, what ours took; None: there is nothing to say."""
    ours, theirs = (build_seconds(result, engine)
                    for engine in ("attendant", rival))
    if None in (ours, theirs) or (name, result["date"]) in BUSY_BUILDS:
        return None
    return ours / theirs


def cost_points(results):
    """{(recall, kind): [(keys, microseconds a query)]}, by keys."""
    points = {}
    for result in results["sets"].values():
        for cell in measured(result["cells"], "attendant"):
            for kind in ("single", "batch"):
                rate = statistics.median(
                    rates(cell, kind, result["metric"]))
                points.setdefault((cell["wanted_recall"], kind), []).append(
                    (cell["keys"], 1e6 / rate))
    return {key: sorted(value) for key, value in points.items()
            if len(value) > 1}


def fitted_exponent(points):
    """Slope of the straight line through logarithms, by least squares."""
    x = [math.log(n) for n, _ in points]
    y = [math.log(t) for _, t in points]
    mean_x, mean_y = statistics.mean(x), statistics.mean(y)
    return (sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) /
            sum((a - mean_x) ** 2 for a in x))
