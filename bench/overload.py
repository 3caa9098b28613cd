#!/usr/bin/python3
"""More than can be done: what a server answers, and how soon, when it is asked for
several times of what it can. Drives attendantd and attendant-load of
build/release/bin and keeps what it measured in bench/results/overload.json, of
which bench/report.py makes the table of bench/README.md.

  bench/run overload           100,000, 300,000 and 600,000 items of 128, three
                               rounds of 5 s a stage
  bench/run overload --quick   one round of 3 s with 300,000, in
                               build/overload-quick.json
  bench/run overload --times 1 2 3 5 10
                               stages of so many times the capacity, for 3 alone
  bench/run overload --apart   the server on one core, in
                               bench/results/overload-apart.json

  bench/run overload --check   and exit status 1 if a bar of bench/bars.py is missed

Queries are exact, so that the engine is the limit and not the wire. Capacity is the
most that a closed loop of 32, 64 or 128 callers reaches, who share passes over the
keys, or that is answered of an open loop at that rate, if that is more. Then an open
loop of 0.7 of that, of so many times of it, and of 0.7 again, 2 s after each. The
generator runs on the server's cores, or with --apart on the others, so that what it
takes to send is nothing that the server lacks; it sends from four connections, and
more where these are full, and does not retry. Meanwhile health is asked for, and the
list of catalogs, ten times a second each.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import grpc

import bars
from compare import processor_name
from engine_process import ROOT

CATALOG = "overload"
CALLERS = (32, 64, 128)
CALM = 0.7  # of the capacity
HEALTH = "/grpc.health.v1.Health/Check"
LIST = "/attendant.v1.CatalogService/ListCatalogs"


class Prober:
    """Asks for what has to be answered all the time, in a with block."""

    def __init__(self, address):
        self._channel = grpc.insecure_channel(address)
        self._calls = [self._channel.unary_unary(method) for method in (HEALTH, LIST)]
        self._stopped = threading.Event()
        self.longest = 0.0
        self.failed = 0
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def _run(self):
        while not self._stopped.wait(0.1):
            for call in self._calls:
                begin = time.monotonic()
                try:
                    call(b"", timeout=10)
                except grpc.RpcError:
                    self.failed += 1
                self.longest = max(self.longest, time.monotonic() - begin)

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()
        self._channel.close()


def resident_mib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0


def processor_seconds(pid):
    """What a process has used of the processor, of all its threads."""
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1]
    user, system = stat.split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def latency_ms(report, percentage):
    for point in report["latencyDistribution"]:
        if point["percentage"] == percentage:
            return point["latency"] / 1e6
    sys.exit(f"attendant-load says nothing of p{percentage}")


def cores_apart():
    """The server's core, and those of everything else."""
    *others, last = range(os.cpu_count())
    return {last}, set(others)


def hold_to_last_core():
    os.sched_setaffinity(0, cores_apart()[0])


def answers_per_second(report):
    """Of an open loop: what came while it was asked, and none that came after."""
    (asked,) = report["slices"]
    return asked["answersPerSecond"]


def measure(options, items, data):
    """One server with so many items, from the first stage to the last."""
    programs = options.build / "bin"
    server = subprocess.Popen(
        [programs / "attendantd", "--data-dir", data, "--listen", "127.0.0.1:0",
         "--http-listen", "none", "--log-level", "error",
         # Scans of all keys.
         "--auto-ivf-min-count", "1000000000"],
        stdout=subprocess.PIPE, text=True,
        preexec_fn=hold_to_last_core if options.apart else None)
    try:
        mark = "attendantd ready on "
        address = next(line for line in server.stdout if line.startswith(mark))
        address = address[len(mark):].strip()

        def load(*arguments):
            ran = subprocess.run(
                [programs / "attendant-load", "--server", address, "--catalog",
                 CATALOG, "--json", *map(str, arguments)],
                stdout=subprocess.PIPE, text=True)
            # 1: some were refused.
            if ran.returncode > 1:
                sys.exit(f"attendant-load ended with {ran.returncode}")
            return json.loads(ran.stdout)

        load("prepare", "--items", items, "--dim", 128)
        alone = load("--concurrency", 1, "--duration", 2)
        capacity = 0
        for callers in CALLERS:
            used = processor_seconds(server.pid)
            report = load("--concurrency", callers, "--warmup", 0, "--duration",
                          options.seconds)
            used = processor_seconds(server.pid) - used
            answered = report["statusCodeDistribution"]["OK"]
            if answered / options.seconds > capacity:
                capacity = answered / options.seconds
                cost_ms = 1000 * used / answered
        report = load("--rate", capacity, "--duration", options.seconds)
        capacity = max(capacity, answers_per_second(report))
        result = {"alone_ms": latency_ms(alone, 50), "capacity": capacity,
                  "cost_ms": cost_ms, "stages": []}
        print(f"{items:,} items: alone {result['alone_ms']:.2f} ms, capacity "
              f"{capacity:.0f} a second, of {cost_ms:.2f} core ms each",
              flush=True)

        def stage(name, times):
            with Prober(address) as prober:
                report = load("--rate", times * capacity, "--duration",
                              options.seconds)
            codes = report["statusCodeDistribution"]
            answered = codes.get("OK", 0)
            others = set(codes) - {"OK", "ResourceExhausted"}
            if others:
                sys.exit(f"{name}: {codes}")
            found = {"name": name, "times": times, "sent": report["count"],
                     "answered": answered,
                     "goodput": answers_per_second(report) / capacity,
                     "p50_ms": latency_ms(report, 50),
                     "p99_ms": latency_ms(report, 99),
                     "refused_p99_ms": report["openLoop"]["refusedP99"] / 1e6,
                     "late_p99_ms": report["openLoop"]["lateP99"] / 1e6,
                     "probe_ms": 1000 * prober.longest,
                     "failed_probes": prober.failed,
                     "resident_mib": resident_mib(server.pid)}
            result["stages"].append(found)
            print(f"  {name}: {answered} of {found['sent']} answered, "
                  f"{found['goodput']:.0%} of the capacity, p50 "
                  f"{found['p50_ms']:.1f} ms, p99 {found['p99_ms']:.1f} ms, of "
                  f"refusals {found['refused_p99_ms']:.1f} ms, sent "
                  f"{found['late_p99_ms']:.1f} ms late, "
                  f"longest probe {found['probe_ms']:.0f} ms, "
                  f"{prober.failed} without an answer, "
                  f"{found['resident_mib']:.0f} MiB", flush=True)

        stage("before", CALM)
        for times in options.times:
            stage(f"{times:g} times", times)
            time.sleep(2)
            stage(f"after {times:g} times", CALM)
        return result
    finally:
        server.terminate()
        server.wait()


def parse_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--items", type=int, nargs="+")
    parser.add_argument("--seconds", type=float, help="of each stage")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--apart", action="store_true",
                        help="the server on a core of its own")
    parser.add_argument("--times", type=float, nargs="+", default=[3])
    parser.add_argument("--check", action="store_true",
                        help="fail if a bar of bench/bars.py is missed")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.items = options.items or (
        [300_000] if options.quick else [100_000, 300_000, 600_000])
    options.seconds = options.seconds or (3 if options.quick else 5)
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.json = options.json or (
        ROOT / "build/overload-quick.json" if options.quick
        else ROOT / ("bench/results/overload-apart.json" if options.apart
                     else "bench/results/overload.json"))
    return options


def main():
    options = parse_options()
    sizes = {str(items): [] for items in options.items}
    if options.apart:
        if os.cpu_count() < 2:
            sys.exit("--apart wants at least two cores")
        os.sched_setaffinity(0, cores_apart()[1])
    for _ in range(options.rounds):
        for items in options.items:
            with tempfile.TemporaryDirectory() as data:
                sizes[str(items)].append(measure(options, items, data))
    result = {"dimension": 128, "seconds": options.seconds,
              "processor": processor_name(), "cores": os.cpu_count(),
              "apart": options.apart,
              "date": time.strftime("%Y-%m-%d"), "sizes": sizes}
    options.json.write_text(json.dumps(result, indent=1) + "\n")
    if options.check and not bars.all_held(bars.of_overload(result)):
        sys.exit(1)


if __name__ == "__main__":
    main()
