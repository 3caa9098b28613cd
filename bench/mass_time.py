#!/usr/bin/env python3
"""What it takes to know a log partition to 0.02, of the time of an exact scan of
floats. Drives mass_time_benchmark of build/release/bench/mass and keeps what it
measured in bench/results/mass-time.json, of which bench/report.py makes the table
of bench/README.md.

  bench/run mass-time           sets of 100,000 and 1,000,000 keys, five rounds of
                                1 s
  bench/run mass-time --quick   20,000 keys, one round of 0.2 s, in
                                build/mass-time-quick.json
  bench/run mass-time --check   and exit status 1 if a bar of bench/bars.py is missed
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import bars
from compare import processor_name
from engine_process import ROOT

SETS = ("wordnet", "mixture-100k", "norms", "foreign", "mixture-1m")
QUICK_SETS = ("mixture-20k",)


def measure(options):
    with tempfile.TemporaryDirectory() as scratch:
        found = pathlib.Path(scratch) / "found.json"
        subprocess.run(
            [str(part) for part in (
                options.build / "bench" / "mass" / "mass_time_benchmark",
                "--data", options.data, "--queries", options.queries,
                "--rounds", options.rounds, "--seconds", options.seconds,
                "--json", found, *options.sets)], check=True)
        sets = json.loads(found.read_text())
    return {"seconds": options.seconds, "processor": processor_name(),
            "date": time.strftime("%Y-%m-%d"),
            "sets": {name: sets[name] for name in options.sets}}


def parse_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float, help="of each measurement")
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--build", type=pathlib.Path,
                        default=ROOT / "build" / "release")
    parser.add_argument("--data", type=pathlib.Path,
                        default=ROOT / "build" / "bench-data")
    parser.add_argument("--check", action="store_true",
                        help="fail if a bar of bench/bars.py is missed")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.sets = options.sets or (QUICK_SETS if options.quick else SETS)
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.seconds = options.seconds or (0.2 if options.quick else 1)
    options.json = options.json or (
        ROOT / "build" / "mass-time-quick.json" if options.quick
        else ROOT / "bench" / "results" / "mass-time.json")
    return options


def main():
    options = parse_options()
    result = measure(options)
    options.json.write_text(json.dumps(result, indent=1) + "\n")
    print(f"wrote {options.json}")
    if options.check and not bars.all_held(bars.of_mass_time(result)):
        sys.exit(1)


if __name__ == "__main__":
    main()
