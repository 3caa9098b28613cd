"""What measurements are to reach, for --check: each bar by the median of the
rounds."""

import dataclasses
import math
import statistics

import compared

# Of overload. What is refused costs some 0.1 ms each: answers that cost less than
# this leave too little beside it.
LEAST_COST_MS = 1
LEAST_GOODPUT = .9  # of the capacity, asked for up to 3 times of it
LEAST_GOODPUT_BEYOND = .8  # asked for more
MOST_REFUSED_P99_MS = 10
MOST_GROWTH = 1.1  # memory of a stage, times that of the first
MOST_PROBE_MS = 1000  # health and lists of catalogs
MOST_P99 = 3  # times that at 0.7 of the capacity
MOST_P99_AFTER = 1.5  # the same, 2 s later; more than rounds differ

# Of served.
LEAST_OF_ECHO = .6  # with 16 callers, and with 64
LEAST_OF_ECHO_MANY = .45  # of 200,000 items, with 16 callers
MOST_MORE_US = 60  # with one
LEAST_SENT = 40_000  # requests a second, of the load tester on one core

# Of mass-time: of the time of an exact scan of floats, one query on one core, by
# the keys from which on it is wanted.
MOST_OF_SCAN = {100_000: .25, 1_000_000: .2}
MOST_ERROR_95 = .02  # in the log partition, as is stated
MOST_ERROR = .1  # the worst

# Of live, with 1,000,000 items of 128.
LEAST_INGEST = 50_000  # items a second
LEAST_STORED = .99  # of the items that were due beside queries
MOST_LIVE_P99 = 2  # times that at rest: while all is built anew, while written to
MOST_AT_REST = 1.5  # bytes, of the keys' own
MOST_WHILE_BUILT = 2.2  # of what is held at rest
MOST_START_S = 5  # after a clean stop
MOST_START_AFTER_KILL_S = 10


# Of rivals: times the queries a second of FAISS's fastest at recalls of .95 and .99.
LEAST_OF_FAISS = {("mixture-1m", "single"): 2, ("mixture-1m", "batch"): 2.5,
                  ("mixture-200k", "single"): 1.6, ("mixture-200k", "batch"): 2,
                  ("fashion", "single"): 2, ("fashion", "batch"): 1.8}
LEAST_OF_HNSWLIB = 3  # at .99
MOST_BUILD_OF_HNSWLIB = .2
MOST_BUILD_S = {1_000_000: 30}  # by keys
MOST_OF_KEYS = 1.35  # bytes held, of the fp32 keys'

# Of rivals, exact and cost.
QUERIES = 1000  # of results that don't say it
BATCH = 64

# Of exact, times FAISS Flat.
LEAST_PROVEN = {"single": 4.5, "batch": 8}
LEAST_EXACT = {"single": 1.2, "batch": 6}
MOST_PROVEN_ERROR = .001  # in the log partition, 99th percentile
MOST_PROVEN_MS = {60_000: .15}  # alone, by keys

# Of cost.
MOST_EXPONENT = .6


@dataclasses.dataclass
class Bar:
    what: str
    got: float  # nan: it was not measured, which misses every bar
    least: float = float("-inf")
    most: float = float("inf")

    @property
    def held(self):
        return self.least <= self.got <= self.most

    @property
    def text(self):
        want = (f"at least {self.least:g}" if self.least != float("-inf")
                else f"at most {self.most:g}")
        return f"{self.what}: got {self.got_text}, want {want}"

    @property
    def got_text(self):
        """3 significant digits, or as many as it takes to say the same of it."""
        if math.isnan(self.got):
            return "none"
        texts = (f"{self.got:.{digits}g}" for digits in range(3, 18))
        return next(text for text in texts
                    if dataclasses.replace(self, got=float(text)).held
                    == self.held)

    def __str__(self):
        return f"{'held' if self.held else 'MISSED'}: {self.text}"


def growth(round_):
    """Of overload: the most memory of a stage, times that of the first."""
    first, *others = (stage["resident_mib"] for stage in round_["stages"])
    return max(others) / first


def of_overload(result):
    """For each size and each stage of more than the capacity."""
    counted = set()
    for items, rounds in result["sizes"].items():
        cost_ms = statistics.median(a["cost_ms"] for a in rounds)
        for number, stage in enumerate(rounds[0]["stages"]):
            if stage["times"] <= 1:
                continue

            def median(which, name, to=None):
                return statistics.median(
                    a["stages"][which][name]
                    / (a["stages"][to][name] if to is not None else 1)
                    for a in rounds)

            case = f"{int(items):,} items at {stage['name']}"
            if cost_ms >= LEAST_COST_MS:
                counted.add(items)
                yield Bar(f"{case}, answered of the capacity",
                          median(number, "goodput"),
                          least=(LEAST_GOODPUT if stage["times"] <= 3
                                 else LEAST_GOODPUT_BEYOND))
            yield Bar(f"{case}, p99 of refusals, ms",
                      median(number, "refused_p99_ms"),
                      most=MOST_REFUSED_P99_MS)
            yield Bar(f"{case}, p99 to that before",
                      median(number, "p99_ms", to=0), most=MOST_P99)
            yield Bar(f"{case}, p99 2 s later to that before",
                      median(number + 1, "p99_ms", to=0), most=MOST_P99_AFTER)
        yield Bar(f"{int(items):,} items, memory to that before",
                  statistics.median(growth(a) for a in rounds),
                  most=MOST_GROWTH)
        yield Bar(f"{int(items):,} items, probes without an answer",
                  sum(stage["failed_probes"] for a in rounds
                      for stage in a["stages"]), most=0)
        yield Bar(f"{int(items):,} items, longest probe, ms",
                  max(stage["probe_ms"] for a in rounds
                      for stage in a["stages"]), most=MOST_PROBE_MS)
    yield Bar(f"sizes of {LEAST_COST_MS:g} ms a query and more", len(counted),
              least=1)


def of_served(result):
    for index in result["indexes"]:
        for callers in ("16", "64"):
            yield Bar(f"{index}, {callers} callers, share of the echo's rate",
                      statistics.median(
                          a[index]["per_second"] / a["echo"]["per_second"]
                          for a in result["rounds"][callers]),
                      least=LEAST_OF_ECHO)
        yield Bar(f"{index}, one caller, us more than the echo",
                  statistics.median(
                      a[index]["p50_us"] - a["echo"]["p50_us"]
                      for a in result["rounds"]["1"]), most=MOST_MORE_US)
    many = result["many"]
    yield Bar(f"{many['items']:,} items, {many['callers']} callers, share of the "
              "echo's rate",
              statistics.median(a["attend"]["per_second"]
                                / a["echo"]["per_second"]
                                for a in many["rounds"]),
              least=LEAST_OF_ECHO_MANY)
    # On one core alone there is none to send from.
    if "generator" in result:
        yield Bar("requests a second that the load tester sends",
                  statistics.median(a["per_second"]
                                    for a in result["generator"]),
                  least=LEAST_SENT)


def shares_of_scan(cell, kind):
    """Of mass-time, by round."""
    return [a["stated"][kind] / a["exact"][kind] for a in cell["rounds"]]


def of_mass_time(result):
    for name, found in result["sets"].items():
        most = min((share for keys, share in MOST_OF_SCAN.items()
                    if keys <= found["keys"]), default=None)
        yield Bar(f"{name}, temperatures", len(found["cells"]), least=1)
        for cell in found["cells"]:
            case = f"{name} at {cell['temperature']:g}"
            if most is not None:
                yield Bar(f"{case}, alone, of an exact scan's time",
                          statistics.median(shares_of_scan(cell, "single_ms")),
                          most=most)
            yield Bar(f"{case}, error of 95 %", cell["error"]["95"],
                      most=MOST_ERROR_95)
            yield Bar(f"{case}, worst error", cell["error"]["worst"],
                      most=MOST_ERROR)


def of_live(result):
    rounds, killed = result["rounds"], result["restart_after_kill"]
    for name, case in (("build", "while all is built anew"),
                       ("write", "while items are written")):
        yield Bar(f"p99 {case} to that at rest",
                  statistics.median(a[name]["p99_ms"] / a["rest"]["p99_ms"]
                                    for a in rounds), most=MOST_LIVE_P99)
    # What is refused or fails has no latency.
    for name in ("build", "write"):
        yield Bar(f"queries beside {name}s without an answer",
                  sum(a[name]["sent"] - a[name]["answered"] for a in rounds),
                  most=0)
    # Items that wait leave the queries alone.
    yield Bar("items stored beside queries, of those due",
              statistics.median(a["write"]["writes"]["stored"]
                                / a["write"]["writes"]["due"] for a in rounds),
              least=LEAST_STORED)
    resident = result["memory"]["resident_bytes"]
    yield Bar("memory at rest to the keys",
              resident / (result["items"] * result["dimension"] * 4),
              most=MOST_AT_REST)
    yield Bar("most memory while all is built anew to that at rest",
              max(a["build"]["peak_bytes"] for a in rounds) / resident,
              most=MOST_WHILE_BUILT)
    yield Bar("items imported a second", result["ingest"]["items_per_second"],
              least=LEAST_INGEST)
    yield Bar("start after a clean stop, s",
              result["restart_after_stop"]["ready_seconds"], most=MOST_START_S)
    yield Bar("start after kill -9, s", killed["ready_seconds"],
              most=MOST_START_AFTER_KILL_S)
    yield Bar("items acknowledged and not there after kill -9",
              max(0, killed["least_items"] - killed["items"]), most=0)


def of_rivals(results):
    for name, result in results["sets"].items():
        found = {row[:3]: row[-1] for row in compared.comparison_rows(result)}
        for recall in compared.RECALLS:
            for kind in ("single", "batch"):
                for rival in ("faiss", "hnswlib"):
                    least = (LEAST_OF_FAISS.get((name, kind))
                             if rival == "faiss"
                             else LEAST_OF_HNSWLIB if recall == .99 else None)
                    if least is not None:
                        yield Bar(f"{name} at {recall:g}, {kind}, times {rival}",
                                  median_of(found.get((recall, kind, rival))),
                                  least=least)
        share = compared.build_share(name, result, "hnswlib")
        if share is not None:
            yield Bar(f"{name}, build, of hnswlib's time", share,
                      most=MOST_BUILD_OF_HNSWLIB)
        for ours in compared.measured(result["cells"], "attendant")[:1]:
            if ours["keys"] in MOST_BUILD_S:
                yield Bar(f"{name}, build, s", ours["build_seconds"],
                          most=MOST_BUILD_S[ours["keys"]])
            yield Bar(f"{name}, bytes held, of the keys'",
                      compared.bytes_per_item(ours) / (4 * ours["dim"]),
                      most=MOST_OF_KEYS)
    yield from of_builds(results)
    yield from of_recalls(results)


def median_of(found):
    return statistics.median(found) if found else math.nan


def of_builds(results):
    for name, result in results["sets"].items():
        yield Bar(f"{name}, cells that an engine could not build",
                  sum("error" in cell for cell in result["cells"]), most=0)


def least_of_batches(recall, queries):
    """The recall of the queries that fill whole batches, if all have `recall` and
    those left out have 1."""
    batched = queries // BATCH * BATCH
    return recall - (1 - recall) * (queries - batched) / batched


def of_recalls(results):
    """Of our cells: that what was tuned has the recall that it was tuned to, and
    that exact answers are."""
    for name, result in results["sets"].items():
        for cell in result["cells"]:
            tuned = cell["configuration"] in compared.OURS
            exact = cell["configuration"] in compared.EXACT_ANSWERS
            if cell["engine"] != "attendant" or not tuned and not exact:
                continue
            if "error" in cell:  # of_builds counts it
                continue
            case = f"{name}, {cell['configuration']}"
            if tuned:
                case += f" at {cell['wanted_recall']:g}"
            least = cell["wanted_recall"] if tuned else 1
            yield Bar(f"{case}, recall",
                      cell.get("recall", cell.get("unreachable", math.nan)),
                      least=least)
            # Since 2026-11-29 of all. What can't be tuned has none.
            if ("batch_recall" in cell or result["date"] > "2026-11-28"
                    and "unreachable" not in cell):
                yield Bar(f"{case}, recall of batches",
                          cell.get("batch_recall", math.nan),
                          least=least_of_batches(
                              least, result.get("queries", QUERIES)))


def of_exact(results):
    yield from of_builds(results)
    yield from of_recalls(results)
    for name, result in results["sets"].items():
        found = {(kind, ours["configuration"]): (ours, ratios)
                 for kind, ours, _, ratios in compared.exact_rows(result)}
        for kind in ("single", "batch"):
            for configuration in compared.EXACT_ANSWERS:
                ours, ratios = found.get((kind, configuration), (None, None))
                proven = configuration.endswith(" proven")
                least = (LEAST_PROVEN if proven else LEAST_EXACT)[kind]
                yield Bar(f"{name}, {configuration}, {kind}, times FAISS Flat",
                          median_of(ratios), least=least)
                if ours and proven and kind == "single":
                    yield Bar(f"{name}, {configuration}, log partition off by",
                              ours["mass_error_99"], most=MOST_PROVEN_ERROR)
                    if ours["keys"] in MOST_PROVEN_MS:
                        yield Bar(f"{name}, {configuration}, ms",
                                  statistics.median(a["p50_ms"]
                                                    for a in ours["single"]),
                                  most=MOST_PROVEN_MS[ours["keys"]])


def of_cost(results):
    yield from of_builds(results)
    yield from of_recalls(results)
    points = compared.cost_points(results)
    for recall in compared.RECALLS:
        for kind in ("single", "batch"):
            of_sizes = points.get((recall, kind))
            yield Bar(f"exponent at {recall:g}, {kind}",
                      compared.fitted_exponent(of_sizes) if of_sizes
                      else math.nan, most=MOST_EXPONENT)


def all_held(bars):
    """Says what became of each. False of none: nothing was checked."""
    bars = list(bars)
    for bar in bars:
        print(bar)
    if not bars:
        print("MISSED: there is no bar")
    return bool(bars) and all(bar.held for bar in bars)
