#!/usr/bin/env python3
"""Runs the engines of bench/rivals by turns and keeps what they did as JSON.

  bench/compare.py rivals   attendant, FAISS and hnswlib at equal recall@100
  bench/compare.py exact    proven and exact answers against FAISS Flat
  bench/compare.py cost     one query from 10,000 to 4,000,000 keys

  --check: and exit status 1 if a bar of bench/bars.py is missed. It is 1 in any
  case if an engine could not build what it was asked to.

Every cell is measured once in each of the rounds, the engines one after the
other, so that what disturbs the machine disturbs all. bench/report.py makes
the tables and plots of what is kept.
"""

import argparse
import contextlib
import datetime
import json
import pathlib
import platform
import re
import sys

import bars
from compared import EXACT_ANSWERS, RECALLS
from engine_process import EngineError, EngineProcess, ROOT

# The configurations of each set. A query's time goes into finding its lists, which
# more of them make longer, and reading those, which they make shorter: of 256 to
# 4,096 lists (FAISS's authors advise 4 to 16 times the root of the keys) those with
# which FAISS 1.15 was fastest, alone or in batches, where tried. So are the factors
# of refining.
MIXTURE_200K = {
    "attendant": ["ivf tuned", "ivf asked"],
    "faiss": ["IVF1024,Flat", "IVF1024,SQ8", "IVF1024,SQ8,RFlat 1.6",
              "IVF1024,PQ64x4fs,RFlat 2", "IVF1024,PQ64x4fs,RFlat 4",
              "IVF2048,Flat", "IVF2048,SQ8", "IVF2048,PQ64x4fs,RFlat 2",
              "HNSW32"],
    "hnswlib": ["M16"],
}
RIVALS = {
    "mixture-200k": MIXTURE_200K,
    "mixture-1m": {
        "attendant": ["ivf tuned", "ivf asked"],
        "faiss": ["IVF4096,Flat", "IVF4096,SQ8", "IVF4096,SQ8,RFlat 1.6",
                  "IVF4096,PQ64x4fs,RFlat 4", "IVF2048,Flat", "IVF2048,SQ8",
                  "IVF1024,SQ8"],
        "hnswlib": ["M16"],
    },
    "fashion": {
        "attendant": ["ivf tuned", "ivf asked"],
        "faiss": ["IVF512,Flat", "IVF512,SQ8", "IVF512,SQ8,RFlat 1.6",
                  "RR128,IVF512,PQ64x4fs,RFlat 8", "IVF1024,Flat",
                  "IVF1024,SQ8", "HNSW32"],
        "hnswlib": ["M16"],
    },
    "wordnet": {
        "attendant": ["ivf tuned", "ivf asked"],
        "faiss": ["IVF1024,Flat", "IVF1024,SQ8", "IVF1024,SQ8,RFlat 1.6",
                  "RR128,IVF1024,PQ64x4fs,RFlat 8",
                  "RR128,IVF256,PQ64x4fs,RFlat 8", "HNSW32"],
        "hnswlib": ["M16"],
    },
}
EXACT = {
    "attendant": list(EXACT_ANSWERS),
    "faiss": ["Flat"],
}
COST = {"attendant": ["ivf tuned"]}
# A cluster for each 500 keys: as hard at every size. mixture-1m is grown-1m.
COST_SETS = ["grown-10k", "grown-50k", "grown-200k", "mixture-1m", "grown-4m"]


def log(text):
    print(text, file=sys.stderr, flush=True)


class Cell:
    """One configuration at one recall."""

    def __init__(self, engine, configuration, built):
        self.engine = engine
        self.configuration = configuration
        self.result = {"engine": engine.name, "configuration": configuration,
                       **{key: built[key] for key in (
                           "build_seconds", "resident_bytes", "keys", "dim")},
                       "single": [], "batch": []}
        self.modes = built["modes"]

    def tune(self, recall):
        """True if it reaches the recall; 0: there is nothing to tune."""
        self.result["wanted_recall"] = recall
        if self.configuration.endswith(" asked"):
            effort = round(1000 * recall)
        elif recall == 0:
            effort = 1
        else:
            tuned = self.engine.ask("tune", recall)
            effort = tuned["effort"]
            if not tuned["reached"]:
                self.result["unreachable"] = tuned["recall"]
                return False
        self.result["effort"] = effort
        self.result.update(self.engine.ask("check", effort))
        return True

    def choose_mode(self, seconds, metric):
        """The way to answer batches that is fastest, of three each, and the
        recall that it has."""
        effort = self.result["effort"]
        rates = {mode: max(self.engine.ask("batch", mode, effort, seconds)[metric]
                           for _ in range(3))
                 for mode in self.modes}
        self.result["modes"] = rates
        self.result["mode"] = max(rates, key=rates.get)
        self.result["batch_recall"] = self.engine.ask(
            "check-batch", self.result["mode"], effort)["recall"]

    def measure(self, seconds):
        self.engine.ask("build", self.configuration)
        effort = self.result["effort"]
        self.result["single"].append(
            self.engine.ask("single", effort, seconds))
        self.result["batch"].append(
            self.engine.ask("batch", self.result["mode"], effort, seconds))


def compare(data_set, configurations, recalls, options):
    """Cells of all configurations at all recalls, measured by turns, and what each
    engine says that it is."""
    with contextlib.ExitStack() as stack:
        cells = []
        done = []
        resident = {}
        versions = {}
        for name, ones in configurations.items():
            engine = stack.enter_context(
                EngineProcess(name, data_set, options))
            if name != "attendant":
                versions[name] = engine.ask("version")["version"]
            for configuration in ones:
                index = configuration.split(" ")[0]
                try:
                    built = engine.ask("build", configuration)
                    # An index that is there already adds nothing.
                    built["resident_bytes"] = resident.setdefault(
                        (name, index), built["resident_bytes"])
                except EngineError as error:
                    log(f"  not built: {error}")
                    done += [{"engine": name, "configuration": configuration,
                              "wanted_recall": recall, "error": str(error),
                              "single": [], "batch": []} for recall in recalls]
                    continue
                for recall in recalls:
                    cell = Cell(engine, configuration, built)
                    done.append(cell.result)
                    if cell.tune(recall):
                        cell.choose_mode(options.seconds, options.metric)
                        cells.append(cell)
                    log(f"  {name} {configuration} {recall}: effort "
                        f"{cell.result.get('effort')}, recall "
                        f"{cell.result.get('recall')}, "
                        f"{cell.result.get('mode')}")
        for round_number in range(options.rounds):
            log(f"  round {round_number + 1} of {options.rounds}")
            for cell in cells:
                cell.measure(options.seconds)
        return done, versions


# Of each kind: its sets, their configurations, and the recalls.
KINDS = {
    "rivals": (RIVALS, RECALLS),
    "exact": ({name: EXACT for name in ("fashion", "mixture-200k",
                                        "mixture-1m")}, [0]),
    "cost": ({name: COST for name in COST_SETS}, RECALLS),
}


def processor_name():
    """Virtual machines call processors of several generations by one name."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    parts = dict(re.split(r"\s*:\s*", line, maxsplit=1)
                 for line in lines if ":" in line)
    if "model name" not in parts:
        return platform.machine()
    family = parts.get("cpu family")
    return parts["model name"] + (f", family {family}" if family else "")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--sets", nargs="+",
                        help="data sets; the results of others stay")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5,
                        help="of each measurement")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--temperature", type=float, default=0.1)
    parser.add_argument("--build", type=pathlib.Path,
                        default=ROOT / "build" / "release")
    parser.add_argument("--data", type=pathlib.Path,
                        default=ROOT / "build" / "bench-data")
    parser.add_argument("--output", type=pathlib.Path,
                        help="default: bench/results/KIND.json")
    parser.add_argument("--processor-time", action="store_true",
                        help="choose modes by processor time: for a machine "
                             "that has other work")
    parser.add_argument("--check", action="store_true",
                        help="fail if a bar of bench/bars.py is missed")
    options = parser.parse_args()
    options.metric = ("queries_per_processor_second" if options.processor_time
                      else "queries_per_second")
    output = options.output or (
        ROOT / "bench" / "results" / f"{options.kind}.json")
    output.parent.mkdir(parents=True, exist_ok=True)
    configurations, recalls = KINDS[options.kind]
    built = True
    for name in options.sets or configurations:
        log(name)
        cells, versions = compare(name, configurations[name], recalls, options)
        built = built and not any("error" in cell for cell in cells)
        kept = json.loads(output.read_text()) if output.exists() else {}
        kept.setdefault("sets", {})[name] = {
            "date": datetime.date.today().isoformat(),
            "processor": processor_name(),
            "rounds": options.rounds,
            "seconds": options.seconds,
            "queries": options.queries,
            "temperature": options.temperature,
            "metric": options.metric,
            "versions": versions,
            "cells": cells,
        }
        output.write_text(json.dumps(kept, indent=1) + "\n")
    log(f"wrote {output}")
    of_kind = {"rivals": bars.of_rivals, "exact": bars.of_exact,
               "cost": bars.of_cost}[options.kind]
    if options.check and not bars.all_held(of_kind(kept)):
        sys.exit(1)
    sys.exit(0 if built else "an engine could not build all")


if __name__ == "__main__":
    main()
