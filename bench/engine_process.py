"""One engine of bench/rivals, talked to by lines."""

import contextlib
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def blas_settings():
    """OpenBLAS 0.3.21 takes a processor that it does not know for one of 2004,
    and FAISS, which finds lists for batches and trains by it, for as slow."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    return {"OPENBLAS_CORETYPE": "SKYLAKEX"} if "avx512bw" in flags else {}


class EngineError(Exception):
    pass


class EngineProcess:
    """A running program; use as a context manager."""

    def __init__(self, name, data_set, options):
        path = options.build / "bench" / "rivals" / f"{name}_engine"
        command = [path, "--data", options.data, "--set", data_set,
                   "--queries", str(options.queries),
                   "--temperature", str(options.temperature)]
        # Threads that wait must not take the core from those that work.
        environment = {"OMP_WAIT_POLICY": "passive", **blas_settings(),
                       **os.environ}
        self.name = name
        self._process = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, bufsize=1, env=environment)

    def ask(self, *words):
        """The answer to a command, a dict; EngineError if it has none."""
        command = " ".join(str(word) for word in words)
        line = ""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(command + "\n")
            line = self._process.stdout.readline()
        if not line:
            raise EngineError(f"{self.name}: ended at: {command}")
        answer = json.loads(line)
        if "error" in answer:
            raise EngineError(f"{self.name}: {command}: {answer['error']}")
        return answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
