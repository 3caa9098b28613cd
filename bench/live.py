#!/usr/bin/env python3
"""A catalog that lives: how fast it takes items, comes back, and answers while
it is written to and built anew. Drives attendantd and attendant-load of
build/release/bin and keeps what it measured in bench/results/live.json, of which
bench/report.py makes the tables of bench/README.md.

  bench/run live             1,000,000 items of 128, five rounds of 60 s: under
                             half an hour
  bench/run live --quick     100,000 items, one round of 5 s, in
                             build/live-quick.json
  bench/run live --check     and exit status 1 if a bar of bench/bars.py is missed

The generator runs on the server's cores. Queries come in an open loop at 40 % of
what a closed loop of 16 callers reached, and latencies count from when a query was
due. Beside them are kept how late the generator itself was, and what the server
says that its calls took, from arrival to reply. A full build is had by moving the
keys to disk or back, which trains all anew and answers by the index before it
meanwhile; the queries beside it begin before and end after it, so that the change
from one index to the next is among what is measured. Recall is that of a caller
alone, at rest. Last, the server is killed amid writes, so that it has a log to
replay.
"""

import argparse
import atexit
import contextlib
import json
import math
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import bars
from compare import processor_name
from engine_process import ROOT

CATALOG = "live"
FIELD = "key"
WARMUP = 1  # seconds of a load that don't count
VERIFIED = 200  # answers that are checked against exact ones


def start(*command, **options):
    """A process that does not outlive this one."""
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE,
                               text=True, **options)
    atexit.register(process.kill)
    return process


def report_of(process, statuses=(0,)):
    """What a program says as JSON."""
    text, _ = process.communicate()
    if process.returncode not in statuses:
        sys.exit(f"{process.args}: exit status {process.returncode}")
    return json.loads(text)


class Server:
    """attendantd on a data directory; the times of its start are kept."""

    def __init__(self, options, data):
        self._bin = options.build / "bin"
        # What it says of its start; of queries it says nothing unless they are
        # slow.
        self._log = tempfile.TemporaryFile("w+")
        begin = time.monotonic()
        self._process = start(
            self._bin / "attendantd", "--data-dir", data, "--listen",
            "127.0.0.1:0", "--http-listen", "127.0.0.1:0", stderr=self._log)
        http = "attendantd http on "
        mark = "attendantd ready on "
        for line in self._process.stdout:
            if line.startswith(http):
                self._http = line[len(http):].strip()
            if line.startswith(mark):
                break
        else:
            sys.exit("attendantd did not start")
        self.ready_seconds = time.monotonic() - begin
        self._begin = begin
        self.address = line[len(mark):].strip()

    def opened(self):
        """What its log says of the catalog as it was opened."""
        self._log.seek(0)
        for line in self._log:
            event = json.loads(line)
            if event["event"] == "catalog_opened":
                return event
        sys.exit("attendantd does not say what it opened")

    def metrics(self):
        """The lines of its page of metrics."""
        with urllib.request.urlopen(f"http://{self._http}/metrics") as page:
            return page.read().decode().splitlines()

    def gauge(self, name):
        """What it says of the catalog by that name."""
        start = f'{name}{{catalog="{CATALOG}"}} '
        for line in self.metrics():
            if line.startswith(start):
                return float(line[len(start):])
        sys.exit(f"the server does not tell {name}")

    def call_times(self):
        """How many calls of Attend took up to so many seconds, so far."""
        name = "grpc_server_handling_seconds_bucket{"
        counts = {}
        for line in self.metrics():
            if line.startswith(name) and 'grpc_method="Attend"' in line:
                labels, count = line.rsplit(" ", 1)
                bound = float(labels.split('le="')[1].split('"')[0])
                counts[bound] = counts.get(bound, 0) + float(count)
        return counts

    def start(self, program, *arguments):
        return start(self._bin / program, "--server", self.address, "--json",
                     *arguments)

    def run(self, program, *arguments):
        return report_of(self.start(program, *arguments))

    def index(self):
        catalog = self.run("attendant", "catalog", "describe", CATALOG)
        return catalog["catalog"]["indexes"][0], catalog

    def await_index(self):
        """Seconds since the start when all keys are in their index."""
        while True:
            index, _ = self.index()
            if not index.get("training") and not index.get("buildError"):
                return time.monotonic() - self._begin
            if index.get("buildError"):
                sys.exit(f"the index can't be built: {index['buildError']}")
            time.sleep(0.05)

    def start_times(self):
        return {"ready_seconds": self.ready_seconds,
                "index_seconds": self.await_index()}

    def await_rest(self):
        """Returns when what was written is one segment with all else."""
        self.await_index()
        end = time.monotonic() + 300
        while time.monotonic() < end:
            if self.gauge("attendant_catalog_segments") == 1:
                return
            time.sleep(0.5)
        sys.exit("what was written was not merged within 300 s")

    def resident_bytes(self):
        status = pathlib.Path(f"/proc/{self._process.pid}/status").read_text()
        return 1024 * sum(int(line.split()[1]) for line in status.splitlines()
                          if line.startswith(("RssAnon:", "RssShmem:")))

    def stop(self, number):
        self._process.send_signal(number)
        self._process.wait()
        self._process.stdout.close()


class PeakMemory:
    """The most that a server was seen to hold, looked at every 50 ms."""

    def __init__(self, server):
        self.bytes = 0
        self._server = server
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self):
        while not self._stop.wait(0.05):
            self.bytes = max(self.bytes, self._server.resident_bytes())

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


def build_anew(server, on_disk):
    """Seconds of a full build."""
    server.run("attendant", "catalog", "update", CATALOG, FIELD,
               "--keys-on-disk", "yes" if on_disk else "no")
    begin = time.monotonic()
    # By the page of metrics: a program for each look takes 33 ms of a core, for
    # which a hundredth of the queries would be late.
    while server.gauge("attendant_catalog_index_training") == 1:
        time.sleep(0.5)
    return time.monotonic() - begin


def percentile_ms(before, after, share):
    """Of calls between two readings of Server.call_times; within a bucket they
    are taken to lie evenly over the logarithm."""
    counts = {bound: count - before.get(bound, 0)
              for bound, count in sorted(after.items())}
    wanted = share * counts[math.inf]
    low, below = 25e-6, 0
    for bound, count in counts.items():
        if count >= wanted:
            if math.isinf(bound):
                break
            part = (wanted - below) / max(1, count - below)
            return 1e3 * low * (bound / low) ** part
        low, below = bound, count
    return 1e3 * low


def ask(server, load, work=None):
    """Milliseconds by percentile, and what became of the queries; with work, of
    those from before it began until after it ended, and what it returned."""
    before = server.call_times()
    process = server.start(*load)
    done = {}
    if work is not None:
        while server.call_times() == before:
            time.sleep(0.1)
        time.sleep(WARMUP + 1)
        done = work()
        time.sleep(1)
        # SIGINT is ignored by what a shell runs in the background.
        process.send_signal(signal.SIGTERM)
    report = report_of(process, statuses=(0, 1))  # 1: some failed
    after = server.call_times()
    found = {f"p{entry['percentage']:g}_ms": entry["latency"] / 1e6
             for entry in report["latencyDistribution"]}
    loop = report["openLoop"]
    return {**found, "server_p50_ms": percentile_ms(before, after, 0.5),
            "server_p99_ms": percentile_ms(before, after, 0.99),
            "late_p99_ms": loop["lateP99"] / 1e6, "rate": loop["rate"],
            "sent": loop["sent"], "answered": loop["answered"],
            "refused": loop["refused"], "late": loop["late"],
            **({"writes": report["writes"]} if "writes" in report else {}),
            **done}


def kill_amid_writes(server, options):
    """Once items were written for so many seconds; how many were stored by what
    was acknowledged, and how many items there were at least."""
    def count():
        return int(server.index()[1]["catalog"]["itemCount"])

    before = count()
    process = server.start(
        "attendant-load", "--catalog", CATALOG, "--warmup", 0, "--duration",
        options.seconds + 60, "--rate", 1, "--timeout", 2,
        "--writes-per-second", options.writes)
    while count() == before:
        time.sleep(0.1)
    time.sleep(options.seconds)
    server.stop(signal.SIGKILL)
    process.send_signal(signal.SIGTERM)
    # 1, 3: some failed, or the server can't be reached any more.
    report = report_of(process, statuses=(1, 3))
    stored = report["writes"]["stored"]
    # Every second one is new.
    return {"stored": stored, "least_items": before + stored // 2}


def measure(options, data):
    result = {"items": options.items, "dimension": options.dim,
              "seconds": options.seconds, "processor": processor_name(),
              "cores": os.cpu_count(), "date": time.strftime("%Y-%m-%d")}
    server = Server(options, data)
    with PeakMemory(server) as peak:
        prepared = server.run(
            "attendant-load", "--catalog", CATALOG, "prepare", "--items",
            options.items, "--dim", options.dim, "--wait-index")
    result["ingest"] = {"items_per_second": prepared["itemsPerSecond"],
                        "seconds": prepared["seconds"],
                        "index_seconds": prepared["indexSeconds"],
                        "peak_bytes": peak.bytes}
    time.sleep(options.rest)
    index, described = server.index()
    result["index"] = index
    result["memory"] = {"resident_bytes": server.resident_bytes(),
                        # Canonical JSON has 64 bits as texts.
                        "parts": {part: int(size) for part, size
                                  in described["catalog"]["memory"].items()}}

    server.stop(signal.SIGTERM)
    server = Server(options, data)
    result["restart_after_stop"] = server.start_times()

    load = ("attendant-load", "--catalog", CATALOG, "--warmup", WARMUP)
    timed = (*load, "--duration", options.seconds)
    result["closed_loop_per_second"] = server.run(*timed)["rps"]
    result["verify"] = server.run(*timed, "--concurrency", 1, "--verify",
                                  VERIFIED)["verify"]
    rate = ("--rate", 0.4 * result["closed_loop_per_second"])
    # Until it is stopped.
    endless = (*load, "--duration", 3600, *rate)
    rounds = []
    for _ in range(options.rounds):
        at_rest = ask(server, (*timed, *rate))
        with PeakMemory(server) as peak:
            building = ask(server, endless, lambda: {
                "build_seconds": build_anew(server, on_disk=True)})
            build_anew(server, on_disk=False)
        building["peak_bytes"] = peak.bytes
        writing = ask(server, (*timed, *rate, "--writes-per-second",
                               options.writes))
        server.await_rest()
        rounds.append({"rest": at_rest, "build": building, "write": writing})
        for name, found in rounds[-1].items():
            print(f"{name:6} p50 {found['p50_ms']:8.2f} ms  p99 "
                  f"{found['p99_ms']:8.2f} ms, in the server "
                  f"{found['server_p99_ms']:8.2f} ms; sent "
                  f"{found['late_p99_ms']:8.2f} ms late", flush=True)
    result["rounds"] = rounds

    written = kill_amid_writes(server, options)
    server = Server(options, data)
    opened = server.opened()
    result["restart_after_kill"] = {
        **server.start_times(), **written, "items": int(opened["item_count"]),
        "replayed": int(opened["replayed"])}
    server.stop(signal.SIGTERM)
    return result


def parse_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--items", type=int)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--seconds", type=float,
                        help="of each measurement under load")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--writes", type=int, default=10000,
                        help="items a second beside the queries")
    parser.add_argument("--rest", type=float, default=2,
                        help="seconds before memory is looked at")
    parser.add_argument("--build", type=pathlib.Path,
                        default=ROOT / "build" / "release")
    parser.add_argument("--data", type=pathlib.Path,
                        help="where data directories are made; on the disk "
                             "that is to be measured (default: build)")
    parser.add_argument("--check", action="store_true",
                        help="fail if a bar of bench/bars.py is missed")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.items = options.items or (100000 if options.quick else 1000000)
    options.seconds = options.seconds or (5 if options.quick else 60)
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.data = options.data or ROOT / "build"
    options.json = options.json or (
        ROOT / "build" / "live-quick.json" if options.quick
        else ROOT / "bench" / "results" / "live.json")
    return options


def main():
    options = parse_options()
    data = tempfile.mkdtemp(prefix="live-", dir=options.data)
    try:
        result = measure(options, data)
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(data)
    options.json.parent.mkdir(exist_ok=True)
    options.json.write_text(json.dumps(result, indent=1) + "\n")
    p99 = {name: statistics.median(r[name]["p99_ms"] for r in result["rounds"])
           for name in ("rest", "build", "write")}
    print(f"{result['ingest']['items_per_second']:,.0f} items a second; p99 "
          f"{p99['rest']:.2f} ms, {p99['build'] / p99['rest']:.2f} times that "
          f"during builds, {p99['write'] / p99['rest']:.2f} during writes\n"
          f"wrote {options.json}")
    if options.check and not bars.all_held(bars.of_live(result)):
        sys.exit(1)


if __name__ == "__main__":
    main()
