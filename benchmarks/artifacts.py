"""Measures packages and libraries: their size, the time to a first result, and calls.

    python -m mirstack.benchmarks.artifacts [FILE.mir…] [--threads 1] [--seconds 2]

prints for each program, by default the digits classifier, MobileNet, ResNet-18 and a small BERT,

    program      code kB   weights MB   package ms   library ms   call ms   package   library

the code in a shared library and the weights; the milliseconds from reading a package, and from opening a library, to a first result, in a
process that has imported mirstack; a call of the compiled program, and the times of a package's and of a library's over it, interleaved.
"""

from __future__ import annotations

import argparse
import ctypes
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import mirstack
import numpy as np
from mirstack.examples.models.registry import build
from numpy.typing import NDArray

from ..lowering.driver.loading.executable import flatten
from .compare.measure import Here, interleaved

MODELS = ("mobilenet", "resnet18", "bert")
SIZES: dict[str, dict[str, float]] = {"bert": {"layers": 1}}
DIGITS = Path(__file__).parents[1] / "examples/digits/digits.mir"


def programs(folder: Path) -> dict[str, Path]:
    """Returns the programs that are measured by default, by name."""
    return {"digits": DIGITS, **{name: build(name, 0, **SIZES.get(name, {})).write(folder, name) for name in MODELS}}


def _seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def _library_call(path: Path, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]]) -> Callable[[], object]:
    """Returns a call of a library's run function on arrays."""
    library = ctypes.CDLL(str(path))
    run = getattr(library, f"{path.stem}_run")
    tables = [(ctypes.c_void_p * len(arrays))(*(each.ctypes.data for each in arrays)) for arrays in (inputs, outputs)]
    return partial(run, *tables)


def measure(name: str, file: Path, folder: Path, threads: int, seconds: float) -> str:
    """Measures a program in about so many seconds; returns its line of the table."""
    exe = mirstack.compile(file, threads=threads)
    exe.export(folder / f"{name}.mirpkg")
    exe.export(folder / f"{name}.so")
    random = np.random.default_rng(0)
    shapes = [[e for e in param.shape if isinstance(e, int)] for param in exe.params]
    inputs = [random.uniform(0, 1, s).astype(p.dtype) for s, p in zip(shapes, exe.params, strict=True)]
    outputs = [np.zeros_like(each) for each in flatten(exe(*inputs))]

    def from_package() -> Any:
        net = mirstack.Executable.load(folder / f"{name}.mirpkg", threads=threads)
        net(*inputs)
        return net

    def from_library() -> Callable[[], object]:
        call = _library_call(folder / f"{name}.so", inputs, outputs)
        call()
        return call

    package_seconds, loaded = min((_seconds(from_package) for _ in range(3)), key=lambda each: each[0])
    library_seconds, library = _seconds(from_library)
    calls: dict[str, Callable[[], object]] = {
        "compiled": partial(exe, *inputs), "package": partial(loaded, *inputs), "library": library,
    }  # fmt: skip
    found = interleaved({key: Here(call) for key, call in calls.items()}, seconds)
    weights = 0
    total = (folder / f"{name}.so").stat().st_size
    exe.export(folder / f"{name}.ll", weights=folder / "weights.bin")
    weights = (folder / "weights.bin").stat().st_size
    ratios = "".join(f"{found[key] / found['compiled']:>10.2f}" for key in ("package", "library"))
    times = "".join(f"{1e3 * each:>13.1f}" for each in (package_seconds, library_seconds))
    size = f"{(total - weights) / 1e3:>10.0f}{weights / 1e6:>13.2f}"
    return f"{name:<12}{size}{times}{1e3 * found['compiled']:>10.3f}{ratios}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m mirstack.benchmarks.artifacts", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", type=Path, help="programs of known shapes")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="of measuring calls, for each program")
    args = parser.parse_args(arguments)
    columns = ("code kB", "weights MB", "package ms", "library ms", "call ms", "package", "library")
    print(f"{'program':<12}" + "".join(f"{c:>{w}}" for c, w in zip(columns, (10, 13, 13, 13, 10, 10, 10), strict=True)))
    with tempfile.TemporaryDirectory() as folder:
        files = {file.stem: file for file in args.files} or programs(Path(folder))
        for name, file in files.items():
            print(measure(name, file, Path(folder), args.threads, args.seconds), flush=True)


if __name__ == "__main__":
    main()
