"""Prefetches are asked for where the compiler can't drop them: GCC 12 takes a
function that only calls __builtin_prefetch for one without effects, so that
core/kernels/prefetch.h alone may, with an asm that counts as an effect. Kernels
have _mm_prefetch amid their loops."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ONLY = pathlib.Path("core/kernels/prefetch.h")


def strays(files):
    """Of (path, text) pairs, the paths that must not call it and do."""
    return [path for path, text in files
            if path != ONLY and "__builtin_prefetch" in text]


def main():
    files = [(path.relative_to(ROOT), path.read_text())
             for folder in ("core", "service", "client", "bench")
             for path in sorted((ROOT / folder).rglob("*"))
             if path.suffix in (".cc", ".h")]
    planted = pathlib.Path("core/base/planted.h")
    assert strays([(planted, "__builtin_prefetch(a)")]) == [planted]
    effects = (ROOT / ONLY).read_text().count('asm volatile("")')
    assert effects >= 1, f"{ONLY}: without an asm its calls are dropped"
    found = strays(files)
    for path in found:
        print(f"{path}: call PrefetchLine of {ONLY} instead", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
