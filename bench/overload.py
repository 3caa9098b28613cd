#!/usr/bin/python3
"""More than can be done: what a server answers, and how soon, when it is asked for
several times of what it can. Drives attendantd and attendant-load of
build/release/bin and prints the table of bench/README.md.

  bench/run overload             100,000 items of 128, 20 s a stage
  bench/run overload --seconds 5 --times 3

Queries are exact, so that the engine is the limit and not the wire. Capacity is
what a closed loop of 32 callers reaches. Then an open loop of 0.7 of that, of so
many times of it, and of 0.7 again, 2 s after each. The generator runs on the
server's cores, sends from four connections and does not retry. Meanwhile health is
asked for, and the list of catalogs, ten times a second each.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import grpc

from engine_process import ROOT

CATALOG = "overload"
HEALTH = "/grpc.health.v1.Health/Check"
LIST = "/attendant.v1.CatalogService/ListCatalogs"


class Prober:
    """Asks for what has to be answered all the time."""

    def __init__(self, address):
        self._channel = grpc.insecure_channel(address)
        self._calls = [self._channel.unary_unary(method) for method in (HEALTH, LIST)]
        self._stopped = threading.Event()
        self.longest = 0.0
        self.failed = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._stopped.wait(0.1):
            for call in self._calls:
                begin = time.monotonic()
                try:
                    call(b"", timeout=10)
                except grpc.RpcError:
                    self.failed += 1
                self.longest = max(self.longest, time.monotonic() - begin)

    def stop(self):
        self._stopped.set()
        self._thread.join()
        self._channel.close()


def resident_mib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0


def latency_ms(report, percentage):
    for point in report["latencyDistribution"]:
        if point["percentage"] == percentage:
            return point["latency"] / 1e6
    sys.exit(f"attendant-load says nothing of p{percentage}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--times", type=float, nargs="+", default=[1, 2, 3, 5, 10])
    options = parser.parse_args()
    programs = options.build / "bin"

    with tempfile.TemporaryDirectory() as data:
        server = subprocess.Popen(
            [programs / "attendantd", "--data-dir", data, "--listen", "127.0.0.1:0",
             "--http-listen", "none", "--log-level", "error",
             # Scans of all keys.
             "--auto-ivf-min-count", "1000000000"],
            stdout=subprocess.PIPE, text=True)
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

            load("prepare", "--items", options.items, "--dim", 128)
            alone = load("--concurrency", 1, "--duration", 2)
            seconds = options.seconds
            closed = load("--concurrency", 32, "--duration", seconds)
            capacity = closed["statusCodeDistribution"]["OK"] / seconds
            print(f"alone {latency_ms(alone, 50):.2f} ms, capacity {capacity:.0f} a "
                  f"second, {resident_mib(server.pid):.0f} MiB\n")
            print("| offered | sent | answered a second | of the capacity | p50 ms | "
                  "p99 ms | refused | longest probe ms | MiB |")
            print("|---|---|---|---|---|---|---|---|---|")

            def stage(name, times):
                prober = Prober(address)
                report = load("--rate", times * capacity, "--duration", seconds)
                prober.stop()
                codes = report["statusCodeDistribution"]
                answered = codes.get("OK", 0)
                print(f"| {name} | {report['count']} | {answered / seconds:.0f} | "
                      f"{answered / seconds / capacity:.0%} | "
                      f"{latency_ms(report, 50):.1f} | {latency_ms(report, 99):.1f} | "
                      f"{report['count'] - answered} | {1000 * prober.longest:.0f} | "
                      f"{resident_mib(server.pid):.0f} |", flush=True)
                others = set(codes) - {"OK", "RESOURCE_EXHAUSTED"}
                if others or prober.failed:
                    sys.exit(f"{codes}, {prober.failed} probes failed")

            stage("0.7x", 0.7)
            for times in options.times:
                stage(f"{times:g}x", times)
                time.sleep(2)
                stage("0.7x after", 0.7)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
