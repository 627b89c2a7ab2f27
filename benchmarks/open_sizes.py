"""Times programs of open dimensions against the same programs of fixed sizes.

    python -m mirstack.benchmarks.open_sizes [NAME…] [--threads 1] [--rounds 7]

prints for each workload at each size the time of a call with the sizes fixed (`shapes=`), with the code for all sizes, and with the code that a size gets
when it is met often; then the ratios to the first, and their geometric means.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import mirstack
import numpy as np

from ..examples.models.registry import build
from ..lowering.driver.cache.programs import wait_for_writing
from ..lowering.driver.loading.relay_executable import RelayExecutable
from ..lowering.driver.specialize import WORTH_CALLS

Shapes = dict[str, tuple[int, ...]]

FLOATS = "Tensor[({}), float32]"


@dataclass(frozen=True)
class Workload:
    """A program of open dimensions, and the shapes that it is timed at."""

    source: str | Path
    shapes: Sequence[Shapes]


def _program(parameters: dict[str, str], body: str) -> str:
    listed = ", ".join(f"%{name}: {FLOATS.format(shape)}" for name, shape in parameters.items())
    return f"def @main({listed}) {{ {body} }}"


SMALL = {
    "dense": Workload(
        _program({"x": "?, 768", "w": "768, 768"}, "nn.relu(nn.dense(%x, %w, units=768))"),
        [{"x": (rows, 768), "w": (768, 768)} for rows in (1, 2, 4, 8, 16, 37, 128)],
    ),
    "elementwise": Workload(
        _program({"x": "?, ?", "y": "?, ?"}, "nn.relu(add(multiply(%x, 0.5f), %y))"),
        [{"x": shape, "y": shape} for shape in ((1, 16), (7, 100), (64, 512), (300, 1000))],
    ),
    "softmax": Workload(
        _program({"x": "?, ?"}, "nn.softmax(%x)"), [{"x": s} for s in ((4, 30), (64, 128), (384, 384))]
    ),
    "layer_norm": Workload(
        _program({"x": "?, 768", "g": "768", "b": "768"}, "nn.layer_norm(%x, %g, %b)"),
        [{"x": (rows, 768), "g": (768,), "b": (768,)} for rows in (1, 16, 128)],
    ),
    "matmul": Workload(
        _program({"x": "?, ?, 64", "y": "?, ?, 64"}, "nn.batch_matmul(%x, %y, transpose_b=True)"),
        [{"x": (12, n, 64), "y": (12, n, 64)} for n in (16, 50, 128)],
    ),
    "conv2d": Workload(
        _program(
            {"x": "?, 64, ?, ?", "w": "64, 64, 3, 3"},
            "nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=64, kernel_size=[3, 3]))",
        ),
        [{"x": (1, 64, n, n), "w": (64, 64, 3, 3)} for n in (14, 28, 56)],
    ),
    "max_pool2d": Workload(
        _program({"x": "?, 64, ?, ?"}, "nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])"),
        [{"x": (1, 64, n, n)} for n in (14, 56)],
    ),
    "transpose": Workload(
        _program({"x": "?, ?, 12, 64"}, "transpose(%x, axes=[0, 2, 1, 3])"),
        [{"x": (1, n, 12, 64)} for n in (32, 128)],
    ),
    "mean": Workload(
        _program({"x": "?, 256, ?, ?"}, "nn.global_avg_pool2d(%x)"), [{"x": (1, 256, n, n)} for n in (7, 14)]
    ),
}
"""Programs of one kernel."""

IMAGES = ("resnet18", "mobilenet", "squeezenet")
"""Models of images, whose number, height and width are open."""
TOKENS = ("bert", "bert_computed")
"""Layers of transformers, whose number of tokens is open; the last one computes its shapes as an ONNX file does."""

SIZES_OF_TOKENS = """
  let %shape = shape_of(%data, dtype="int64");
  let %batch = strided_slice(%shape, begin=[0], end=[1]);
  let %tokens = strided_slice(%shape, begin=[1], end=[2]);
  let %heads = full(12i64, shape=[1], dtype="int64");
  let %size = full(64i64, shape=[1], dtype="int64");
  let %rows = multiply(%batch, 12i64);
"""


def _images(folder: Path, name: str) -> Workload:
    path = build(name, image=112).write(folder, name)
    text = path.read_text().replace("Tensor[(1, 3, 112, 112), float32]", "Tensor[(?, 3, ?, ?), float32]")
    path.write_text(text.replace("Tensor[(1, 1000), float32]", "Tensor[(?, 1000), float32]"))
    return Workload(path, [{"data": (batch, 3, size, size)} for batch, size in ((1, 112), (2, 96), (1, 160))])


def _tokens(folder: Path, name: str) -> Workload:
    path = build(name.removesuffix("_computed"), sequence=32).write(folder, name)
    computed = name.endswith("_computed")
    text = path.read_text().replace("(1, 32, 768), float32", f"({'?' if computed else '1'}, ?, 768), float32")
    shapes = {
        "1, 32, 12, 64": ("1, -1, 12, 64", "%batch, %tokens, %heads, %size"),
        "1, 12, 32, 64": ("1, 12, -1, 64", "%batch, %heads, %tokens, %size"),
        "-1, 32, 64": ("12, -1, 64", "%rows, %tokens, %size"),
        "1, 32, 768": ("1, -1, 768", ""),
    }
    for fixed, (inferred, parts) in shapes.items():
        if computed:
            shape = f"concatenate(({parts}))" if parts else "%shape"
            text = re.sub(rf"reshape\((%\d+), newshape=\[{fixed}\]\)", rf"dyn.reshape(\1, {shape})", text)
        else:
            text = text.replace(f"newshape=[{fixed}]", f"newshape=[{inferred}]")
    path.write_text(re.sub(r"(def @main.*\{)", rf"\1{SIZES_OF_TOKENS}", text) if computed else text)
    return Workload(path, [{"data": (1, tokens, 768)} for tokens in (8, 32, 100)])


def workloads(names: Sequence[str], folder: Path) -> Iterator[tuple[str, Workload]]:
    """Yields the workloads of these names, all without names; models are written to the folder."""
    makers = {**dict.fromkeys(IMAGES, _images), **dict.fromkeys(TOKENS, _tokens)}
    for name in names or (*SMALL, *makers):
        yield name, SMALL[name] if name in SMALL else makers[name](folder, name)


def compiled(workload: Workload, threads: int, **options: Any) -> RelayExecutable:
    """Returns the program of a workload, compiled with options of `mirstack.compile`."""
    source = workload.source if isinstance(workload.source, Path) else mirstack.parse(workload.source)
    net = mirstack.compile(source, threads=threads, **options)
    assert isinstance(net, RelayExecutable)
    return net


def in_turns(candidates: Mapping[str, Callable[[], object]], rounds: int, calls: int) -> dict[str, float]:
    """Returns each candidate's least processor seconds of one call, over interleaved rounds.

    Other work on the machine only adds to a time.
    """
    least = dict.fromkeys(candidates, float("inf"))
    for _ in range(rounds):
        for name, run in candidates.items():
            run()
            start = time.process_time()
            for _ in range(calls):
                run()
            least[name] = min(least[name], (time.process_time() - start) / calls)
    return least


def measure(workload: Workload, threads: int, rounds: int) -> Iterator[tuple[Shapes, dict[str, float]]]:
    """Yields for each of the shapes the seconds of a call: `fixed`, `open` and `own`."""
    for_all, often = compiled(workload, threads, specialize=False), compiled(workload, threads)
    assert often.variants is not None, "code for sizes is off: MIRSTACK_SPECIALIZE"
    random = np.random.default_rng(0)
    for shapes in workload.shapes:
        inputs = [random.standard_normal(shape, dtype=np.float32) for shape in shapes.values()]
        programs = {"fixed": compiled(workload, threads, shapes=shapes), "open": for_all, "own": often}
        # A thread that writes to the cache would keep the process from being forked.
        wait_for_writing()
        for _ in range(WORTH_CALLS):
            often(*inputs)
            often.variants.wait()
            if often.variants.find(often.variants.sizes_of(inputs) or ()) is not None:
                break
        wanted = programs["fixed"](*inputs)
        for program in programs.values():
            np.testing.assert_allclose(program(*inputs), wanted, rtol=1e-3, atol=1e-3)
        start = time.perf_counter()
        programs["open"](*inputs)
        calls = min(2000, max(1, int(0.02 / (time.perf_counter() - start))))
        candidates = {name: partial(program, *inputs) for name, program in programs.items()}
        yield shapes, in_turns(candidates, rounds, calls)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m mirstack.benchmarks.open_sizes", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*SMALL, *IMAGES, *TOKENS, []], metavar="NAME")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args(arguments)
    ratios: dict[str, dict[str, float]] = {}
    print(f"{'µs a call':<36}{'fixed':>10}{'open':>10}{'own':>10}{'open':>9}{'own':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for name, workload in workloads(args.names, Path(folder)):
            found: list[dict[str, float]] = []
            for shapes, seconds in measure(workload, args.threads, args.rounds):
                found.append({kind: seconds[kind] / seconds["fixed"] for kind in ("open", "own")})
                times = "".join(f"{each * 1e6:>10.1f}" for each in seconds.values())
                first = next(iter(shapes.values()))
                print(f"{name:<14}{first!s:<22}{times}{found[-1]['open']:>9.2f}{found[-1]['own']:>7.2f}", flush=True)
            ratios[name] = {kind: statistics.geometric_mean(each[kind] for each in found) for kind in ("open", "own")}
    means = {kind: statistics.geometric_mean(each[kind] for each in ratios.values()) for kind in ("open", "own")}
    for name, each in (*ratios.items(), ("geometric mean", means)):
        print(f"{name:<66}{each['open']:>9.2f}{each['own']:>7.2f}")


if __name__ == "__main__":
    main()
