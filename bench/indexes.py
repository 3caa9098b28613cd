#!/usr/bin/env python3
"""All kinds of index in one table, FAISS's IndexLSH beside them: recall, memory,
build and time of a query, on a mixture, with norms spread over 10x, and with
queries of another mixture. Drives indexes_benchmark of build/release/bench and
keeps what it measured in bench/results/indexes.json, of which bench/report.py
makes the table of bench/README.md.

  bench/run indexes           100,000 keys, five rounds
  bench/run indexes --quick   5,000 keys, one round, in build/indexes-quick.json
"""

import argparse
import json
import pathlib
import subprocess
import tempfile
import time

from compare import processor_name
from engine_process import ROOT


def parse_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--keys", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--build", type=pathlib.Path,
                        default=ROOT / "build" / "release")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.keys = options.keys or (5000 if options.quick else 100000)
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.json = options.json or (
        ROOT / "build" / "indexes-quick.json" if options.quick
        else ROOT / "bench" / "results" / "indexes.json")
    return options


def main():
    options = parse_options()
    with tempfile.TemporaryDirectory() as scratch:
        found = pathlib.Path(scratch) / "found.json"
        subprocess.run([options.build / "bench" / "indexes_benchmark", "--json",
                        found, str(options.keys), str(options.rounds)],
                       check=True)
        rows = json.loads(found.read_text())
    options.json.write_text(json.dumps(
        {"processor": processor_name(), "date": time.strftime("%Y-%m-%d"),
         "rows": rows}, indent=1) + "\n")
    print(f"wrote {options.json}")


if __name__ == "__main__":
    main()
