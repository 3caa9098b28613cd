"""Checks that the compiler can't drop prefetches. GCC 12 treats a function that only
calls __builtin_prefetch as one without effects, so only core/kernels/prefetch.h may
call it, with an asm that counts as an effect. Kernels use _mm_prefetch inside their
loops."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ONLY = pathlib.Path("core/kernels/prefetch.h")


def strays(files):
    """Returns the paths of (path, text) pairs that call it and must not."""
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
