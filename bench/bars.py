"""What measurements are to reach, for --check: each bar by the median of the
rounds."""

import dataclasses
import statistics

# Of overload. What is refused costs some 0.1 ms each: answers that cost less than
# this leave too little beside it.
LEAST_COST_MS = 1
LEAST_GOODPUT = .9  # of the capacity, asked for up to 3 times of it
LEAST_GOODPUT_BEYOND = .8  # asked for more
MOST_REFUSED_P99_MS = 10
MOST_GROWTH = 1.1  # memory of a stage, times that of the first
MOST_P99 = 3  # times that at 0.7 of the capacity
MOST_P99_AFTER = 1.5  # the same, 2 s later; more than rounds differ

# Of served.
LEAST_OF_ECHO = .6  # with 64 callers
LEAST_OF_ECHO_MANY = .45  # of 200,000 items, with 16 callers
MOST_MORE_US = 60  # with one

# Of mass-time: of the time of an exact scan of floats, one query on one core, by
# the keys from which on it is wanted.
MOST_OF_SCAN = {100_000: .25, 1_000_000: .2}
MOST_ERROR_95 = .02  # in the log partition, as is stated
MOST_ERROR = .1  # the worst

# Of live, with 1,000,000 items of 128.
LEAST_INGEST = 50_000  # items a second
MOST_LIVE_P99 = 2  # times that at rest: while all is built anew, while written to
MOST_AT_REST = 1.5  # bytes, of the keys' own
MOST_WHILE_BUILT = 2.2  # of what is held at rest
MOST_START_S = 5  # after a clean stop
MOST_START_AFTER_KILL_S = 10


@dataclasses.dataclass
class Bar:
    what: str
    got: float
    least: float = float("-inf")
    most: float = float("inf")

    @property
    def held(self):
        return self.least <= self.got <= self.most

    def __str__(self):
        want = (f"at least {self.least:g}" if self.least != float("-inf")
                else f"at most {self.most:g}")
        return (f"{'held' if self.held else 'MISSED'}: {self.what}: got "
                f"{self.got:.3g}, want {want}")


def growth(round_):
    """Of overload: the most memory of a stage, times that of the first."""
    first, *others = (stage["resident_mib"] for stage in round_["stages"])
    return max(others) / first


def of_overload(result):
    """For each size and each stage of more than the capacity."""
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


def of_served(result):
    for index in result["indexes"]:
        yield Bar(f"{index}, 64 callers, share of the echo's rate",
                  statistics.median(
                      a[index]["per_second"] / a["echo"]["per_second"]
                      for a in result["rounds"]["64"]), least=LEAST_OF_ECHO)
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


def shares_of_scan(cell, kind):
    """Of mass-time, by round."""
    return [a["stated"][kind] / a["exact"][kind] for a in cell["rounds"]]


def of_mass_time(result):
    for name, found in result["sets"].items():
        most = min((share for keys, share in MOST_OF_SCAN.items()
                    if keys <= found["keys"]), default=None)
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
    yield Bar("queries beside builds without an answer",
              sum(a["build"]["sent"] - a["build"]["answered"] for a in rounds),
              most=0)
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


def all_held(bars):
    """Says what became of each."""
    bars = list(bars)
    for bar in bars:
        print(bar)
    return all(bar.held for bar in bars)
