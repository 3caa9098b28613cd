#!/usr/bin/env python3
"""What a request costs apart from its answer: attendantd beside an echo of the
same messages, and what the load tester itself can send. Drives attendantd,
attendant-load, echo_server and served_benchmark of build/release and keeps what
it measured in bench/results/served.json, of which bench/report.py makes the
tables of bench/README.md.

  bench/run served             10,000 items of 64, then 200,000 of 128, five rounds
                               of 3 s
  bench/run served --quick     one round of 1 s, in build/served-quick.json
  bench/run served --check     and exit status 1 if a bar of bench/bars.py is missed

The echo is a server on the same gRPC that parses each request and serialises the
same reply, on the thread that the call arrives on: attendantd's own to the first of
the queries. The servers are measured by turns, with the same queries, near stored
keys, and the defaults of a request: the echo, a catalog with an IVF index, and one with the index
that AUTO chooses. The load tester is on the same cores. Beforehand, answers are
checked against exact ones. The load tester's own rate is had beside a server that
does nothing, each of them held to one core. What 200,000 items at a recall of 0.95
have of the echo is measured by served_benchmark, with servers and callers in one
process.
"""

import argparse
import base64
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import bars
from compare import processor_name
from engine_process import ROOT

FIELD = "key"
CALLERS = (1, 16, 64)
INDEXES = ("ivf", "auto")  # also the catalogs' names
NOISE = .1
VERIFIED = 500


@contextlib.contextmanager
def serving(mark, *command, core=None):
    """A server, from when it says so to the end; its address."""
    pin = ["taskset", "-c", str(core)] if core is not None else []
    process = subprocess.Popen([*pin, *map(str, command)],
                               stdout=subprocess.PIPE, text=True)
    try:
        for line in process.stdout:
            if line.startswith(mark):
                yield line[len(mark):].strip()
                break
        else:
            sys.exit(f"{command[0]} did not start")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        process.stdout.close()


def run(options, program, address, *arguments, core=None, statuses=(0,)):
    """What a program says as JSON."""
    pin = ["taskset", "-c", str(core)] if core is not None else []
    result = subprocess.run(
        [*pin, options.build / "bin" / program, "--server", address, "--json",
         *map(str, arguments)],
        stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode not in statuses:
        sys.exit(f"{program} {arguments}: exit status {result.returncode}")
    return json.loads(result.stdout)


def write_queries(options, attendantd, path, count=1024):
    """AttendRequests, a line each, of stored keys with noise of a tenth of their
    norm, as attendant-load makes them, which can't ask the echo for keys; returns
    the first."""
    items = path.with_suffix(".items")
    run(options, "attendant", attendantd, "items", "export", INDEXES[0], items)
    draw = random.Random(1)
    requests = []
    for line in draw.choices(items.read_text().splitlines(), k=count):
        key = json.loads(line)["keys"][FIELD]
        noise = NOISE * (sum(x * x for x in key) / len(key)) ** .5
        floats = struct.pack(f"<{len(key)}f",
                             *(draw.gauss(x, noise) for x in key))
        requests.append({
            "query": {"vector": {"float32Le": base64.b64encode(floats).decode()}},
            "keyField": FIELD, "resultCount": 10})
    path.write_text("".join(json.dumps(request) + "\n" for request in requests))
    return requests[0]


def load(options, address, catalog, queries, callers, core=None):
    # 1: some were refused. A server that was held up for a moment may do that to
    # many callers at once; a hundredth is no matter.
    report = run(options, "attendant-load", address, "--catalog", catalog,
                 # It would ask the echo for it.
                 "--field", FIELD, "--queries", queries, "--concurrency",
                 callers, "--warmup", .5, "--duration", options.seconds,
                 core=core, statuses=(0, 1))
    answered = report["statusCodeDistribution"].get("OK", 0)
    if answered < .99 * report["count"]:
        sys.exit(f"{callers} callers: {report['statusCodeDistribution']}")
    by_percentile = {entry["percentage"]: entry["latency"] / 1e3
                     for entry in report["latencyDistribution"]}
    # `rps` counts what was refused too.
    return {"per_second": answered / (report["total"] / 1e9),
            "p50_us": by_percentile[50],
            "p99_us": by_percentile[99]}


def measure_rounds(options, attendantd, echo, queries):
    found = {str(callers): [] for callers in CALLERS}
    turns = [("echo", echo)] + [(index, attendantd) for index in INDEXES]
    for number in range(options.rounds):
        for callers in CALLERS:
            round_ = {name: load(options, address,
                                 INDEXES[0] if name == "echo" else name,
                                 queries, callers)
                      for name, address in turns[::-1 if number % 2 else 1]}
            found[str(callers)].append(round_)
            print(f"{callers:3} callers: " + "; ".join(
                f"{name} {round_[name]['per_second']:.0f} a second, p50 "
                f"{round_[name]['p50_us']:.0f} us"
                for name, _ in turns), flush=True)
    return found


def verify(options, attendantd, index, queries):
    """The recall of answers to one caller, against exact ones."""
    return run(options, "attendant-load", attendantd, "--catalog", index,
               "--queries", queries, "--concurrency", 1, "--warmup", 0,
               "--duration", options.seconds, "--verify", VERIFIED)["verify"]


def prepare(options, attendantd, index):
    catalog = ("--catalog", index)
    run(options, "attendant-load", attendantd, *catalog, "prepare", "--items",
        options.items, "--dim", options.dim, "--clusters",
        max(1, options.items // 500), "--wait-index")
    run(options, "attendant", attendantd, "catalog", "update", index, FIELD,
        "--index", index)
    while True:
        described = run(options, "attendant", attendantd, "catalog",
                        "describe", index)["catalog"]["indexes"][0]
        if not described.get("training"):
            return described
        time.sleep(.1)


def measure_generator(options, queries):
    """Requests a second that one core sends to a server that does nothing."""
    echo_server = options.build / "bench" / "served" / "echo_server"
    with serving("echo_server ready on ", echo_server, "--null",
                 core=1) as address:
        return [load(options, address, "null", queries, 64, core=0)
                for _ in range(options.rounds)]


def measure_many_items(options, scratch):
    found = scratch / "many.json"
    subprocess.run(
        [options.build / "bench" / "served" / "served_benchmark", "--json",
         found, options.many, str(options.rounds),
         str(max(1, round(options.seconds)))],
        cwd=ROOT, check=True)  # under which the data is
    return json.loads(found.read_text())


def measure(options, scratch):
    result = {"items": options.items, "dimension": options.dim,
              "seconds": options.seconds, "processor": processor_name(),
              "cores": os.cpu_count(),
              "date": time.strftime("%Y-%m-%d")}
    with serving("attendantd ready on ", options.build / "bin" / "attendantd",
                 "--data-dir", scratch / "data", "--listen", "127.0.0.1:0",
                 "--log-level", "error") as attendantd:
        result["indexes"] = {index: prepare(options, attendantd, index)
                             for index in INDEXES}
        queries = scratch / "queries.jsonl"
        first = write_queries(options, attendantd, queries)
        result["verify"] = {index: verify(options, attendantd, index, queries)
                            for index in INDEXES}
        request = scratch / "request.json"
        request.write_text(json.dumps({**first, "catalog": INDEXES[0]}))
        echo_server = options.build / "bench" / "served" / "echo_server"
        with serving("echo_server ready on ", echo_server, "--reply-of",
                     attendantd, "--request", request) as echo:
            result["rounds"] = measure_rounds(options, attendantd, echo,
                                              queries)
    if os.cpu_count() > 1:
        result["generator"] = measure_generator(options, queries)
        print("one core sends " + " ".join(
            f"{each['per_second']:.0f}" for each in result["generator"]),
              "a second")
    result["many"] = measure_many_items(options, scratch)
    return result


def parse_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--items", type=int, default=10000)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--seconds", type=float, help="of each measurement")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--many", metavar="SET",
                        help="the set of bench/data with many items")
    parser.add_argument("--build", type=pathlib.Path,
                        default=ROOT / "build" / "release")
    parser.add_argument("--check", action="store_true",
                        help="fail if a bar of bench/bars.py is missed")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.seconds = options.seconds or (1 if options.quick else 3)
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.many = options.many or (
        "mixture-20k" if options.quick else "mixture-200k")
    options.json = options.json or (
        ROOT / "build" / "served-quick.json" if options.quick
        else ROOT / "bench" / "results" / "served.json")
    return options


def main():
    options = parse_options()
    scratch = pathlib.Path(tempfile.mkdtemp(dir=ROOT / "build"))
    try:
        result = measure(options, scratch)
    finally:
        shutil.rmtree(scratch)
    options.json.write_text(json.dumps(result, indent=1) + "\n")
    ratio = statistics.median(
        round_[INDEXES[0]]["per_second"] / round_["echo"]["per_second"]
        for round_ in result["rounds"]["16"])
    print(f"16 callers: {100 * ratio:.0f} % of the echo; wrote {options.json}")
    if options.check and not bars.all_held(bars.of_served(result)):
        sys.exit(1)


if __name__ == "__main__":
    main()
