"""Runs the benchmarks named on the command line, by default all; prints each measurement and ratio."""

from __future__ import annotations

import sys
from importlib import import_module

BENCHMARKS = (
    "startup",
    "parsing",
    "scaling",
    "depth",
    "rules",
    "passes",
    "schedules",
    "call",
    "dense",
    "elementwise",
    "mlp",
    "quantization",
)


def main(names: list[str]) -> int:
    for name in names:
        if name not in BENCHMARKS:
            print(f"there is no benchmark '{name}'; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
            return 2
    for name in names or BENCHMARKS:
        print(f"== {name}")
        import_module(f"benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
