"""Times programs of open dimensions against the same programs of fixed sizes.

    python -m mirstack.benchmarks.open_sizes [NAME…] [--threads 1] [--rounds 7]

prints, for each workload at each size, the time with the sizes fixed (`shapes=`), the time of the open program and their ratio, then the
geometric mean.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import mirstack
import numpy as np

from mirstack.examples.models.registry import build

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
    "softmax": Workload(_program({"x": "?, ?"}, "nn.softmax(%x)"), [{"x": s} for s in ((4, 30), (64, 128), (384, 384))]),
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
    "mean": Workload(_program({"x": "?, 256, ?, ?"}, "nn.global_avg_pool2d(%x)"), [{"x": (1, 256, n, n)} for n in (7, 14)]),
}
"""Programs of one kernel."""

IMAGES = ("resnet18", "mobilenet", "squeezenet")
TOKENS = ("bert", "bert_dyn", "gpt")


def _images(folder: Path, name: str) -> Workload:
    path = build(name, image=112).write(folder, name)
    text = path.read_text().replace("Tensor[(1, 3, 112, 112), float32]", "Tensor[(?, 3, ?, ?), float32]")
    path.write_text(text.replace("Tensor[(1, 1000), float32]", "Tensor[(?, 1000), float32]"))
    return Workload(path, [{"data": (batch, 3, size, size)} for batch, size in ((1, 112), (2, 96), (1, 160))])


_DYNAMIC = """  %s = shape_of(%data, dtype="int64");
  %b = take(%s, 0i64, axis=0);
"""


def _tokens(folder: Path, name: str) -> Workload:
    """Returns a transformer's layer with an open number of tokens; `bert_dyn` computes its shapes as an ONNX file does."""
    path = build(name.removesuffix("_dyn"), sequence=32).write(folder, name)
    text = path.read_text().replace("Tensor[(1, 32, 768), float32]", f"Tensor[({'?' if name == 'bert_dyn' else '1'}, ?, 768), float32]")
    text = text.replace("newshape=[-1, 32, 64]", "newshape=[12, -1, 64]")
    if name == "bert_dyn":
        text = re.sub(r"reshape\((%\d+), newshape=\[1, 32, 12, 64\]\)", r"dyn.reshape(\1, concatenate((%b, %t, full(12i64, shape=[1], dtype='int64'), full(64i64, shape=[1], dtype='int64'))))", text).replace("'", '"')
        text = re.sub(r"reshape\((%\d+), newshape=\[12, -1, 64\]\)", r"dyn.reshape(\1, concatenate((%bh, %t, full(64i64, shape=[1], dtype='int64'))))", text).replace("'", '"')
        text = re.sub(r"reshape\((%\d+), newshape=\[1, 12, 32, 64\]\)", r"dyn.reshape(\1, concatenate((%b, full(12i64, shape=[1], dtype='int64'), %t, full(64i64, shape=[1], dtype='int64'))))", text).replace("'", '"')
        text = re.sub(r"reshape\((%\d+), newshape=\[1, 32, 768\]\)", r"dyn.reshape(\1, shape_of(%data, dtype='int64'))", text).replace("'", '"')
        sizes = 'let %s = shape_of(%data, dtype="int64");\n  let %b = strided_slice(%s, begin=[0], end=[1]);\n  let %t = strided_slice(%s, begin=[1], end=[2]);\n  let %bh = multiply(%b, 12i64);\n'
        text = re.sub(r"(def @main.*\{\n)", lambda m: m.group(1) + "  " + sizes, text)
    else:
        text = text.replace("newshape=[1, 32, 12, 64]", "newshape=[1, -1, 12, 64]").replace("newshape=[1, 12, 32, 64]", "newshape=[1, 12, -1, 64]").replace("newshape=[1, 32, 768]", "newshape=[1, -1, 768]")
    path.write_text(text)
    return Workload(path, [{"data": (1, tokens, 768)} for tokens in (8, 32, 100)])


def workloads(names: Sequence[str], folder: Path) -> Iterator[tuple[str, Workload]]:
    """Yields the workloads of these names, all without names."""
    for name, workload in SMALL.items():
        if not names or name in names:
            yield name, workload
    for make, kind in ((_images, IMAGES), (_tokens, TOKENS)):
        for name in kind:
            if not names or name in names:
                yield name, make(folder, name)


def measure(workload: Workload, threads: int, rounds: int) -> Iterator[tuple[Shapes, float, float]]:
    """Yields for each of the shapes the seconds of a call, of fixed sizes and of open ones."""
    from mirstack.benchmarks.timing import side_by_side

    def compiled(shapes: Shapes | None) -> mirstack.Executable:
        source = workload.source if isinstance(workload.source, Path) else mirstack.parse(workload.source)
        return mirstack.compile(source, threads=threads, shapes=shapes)

    opened = compiled(None)
    random = np.random.default_rng(0)
    for shapes in workload.shapes:
        fixed = compiled(shapes)
        inputs = [random.standard_normal(shape, dtype=np.float32) for shape in shapes.values()]
        np.testing.assert_allclose(opened(*inputs), fixed(*inputs), rtol=1e-3, atol=1e-3)
        start = __import__("time").perf_counter()
        fixed(*inputs)
        calls = max(1, int(0.02 / max(1e-7, __import__("time").perf_counter() - start)))
        times = side_by_side({"fixed": lambda: fixed(*inputs), "open": lambda: opened(*inputs)}, rounds=rounds, calls=min(calls, 5000))
        yield shapes, times["fixed"], times["open"]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args(arguments)
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, workload in workloads(args.names, Path(folder)):
            found: list[float] = []
            for shapes, fixed, opened in measure(workload, args.threads, args.rounds):
                found.append(opened / fixed)
                print(f"{name:<14}{str(next(iter(shapes.values()))):<20}{fixed * 1e6:>12.1f} µs{opened * 1e6:>12.1f} µs{found[-1]:>8.2f}", flush=True)
            ratios[name] = statistics.geometric_mean(found)
    for name, ratio in ratios.items():
        print(f"  {name:<30}{ratio:>8.2f}")
    print(f"  {'geometric mean':<30}{statistics.geometric_mean(ratios.values()):>8.2f}")


if __name__ == "__main__":
    main()
