"""What measurements are to reach, for --check: each bar by the median of the
rounds."""

import dataclasses
import statistics

# Of overload. What is refused costs some 0.1 ms each: answers that cost less than
# this leave too little beside it.
LEAST_COST_MS = 1
LEAST_GOODPUT = .9  # of the capacity
MOST_P99 = 3  # times that at 0.7 of the capacity
MOST_P99_AFTER = 1.5  # the same, 2 s later; more than rounds differ

# Of served.
LEAST_OF_ECHO = .6  # with 64 callers
MOST_MORE_US = 60  # with one


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
                          median(number, "goodput"), least=LEAST_GOODPUT)
            yield Bar(f"{case}, p99 to that before",
                      median(number, "p99_ms", to=0), most=MOST_P99)
            yield Bar(f"{case}, p99 2 s later to that before",
                      median(number + 1, "p99_ms", to=0), most=MOST_P99_AFTER)
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


def all_held(bars):
    """Says what became of each."""
    bars = list(bars)
    for bar in bars:
        print(bar)
    return all(bar.held for bar in bars)
