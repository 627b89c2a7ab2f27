"""inject-software-pipeline on random pipelines: what is accepted computes the same, and enough is accepted."""

from __future__ import annotations

import random

import numpy as np
import pytest
from mirstack.dialects.tir import PrimFuncOp
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.tir.pipelining.inject_software_pipeline import InjectSoftwarePipeline
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import find_errors
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

SIZE = 12


def program(seed: int) -> str:
    """A loop of up to five statements over buffers of its own and outside ones, in random stages and order."""
    draw = random.Random(seed)
    count = draw.randint(2, 5)
    stages = sorted(draw.randint(0, 3) for _ in range(count))
    if draw.random() < 0.3:
        draw.shuffle(stages)
    stages = [stage - min(stages) for stage in stages]
    orders = list(range(count))
    if draw.random() < 0.6:
        draw.shuffle(orders)
    extent = draw.choice(["12", "8", "4", "1", "n", "n", "n + 1"])
    annotations = f'"software_pipeline_order": {orders}, "software_pipeline_stage": {stages}'
    if draw.random() < 0.3:
        annotations = f'"software_pipeline_async_stages": [0], {annotations}'
    start = draw.choice(["", "", "", "1, 1 + "]) if extent != "12" and "n" not in extent else ""
    lines = [
        "@T.prim_func",
        f'def main(A: T.Buffer(({SIZE},), "int32"), C: T.Buffer(({SIZE},), "int32"), n: T.int32):',
        f"    for i in T.serial({start}{extent}, annotations={{{annotations}}}):",
    ]
    depth = 2
    if draw.random() < 0.8:
        lines.append('        with T.block("body"):')
        depth = 3
    elif count > 2:
        lines[1] = lines[1].replace("):", ', B0: T.Buffer((2,), "int32"), B1: T.Buffer((2,), "int32")):')
    indent = "    " * depth
    own = [f"b{number}" for number in range(count - 1)] if depth == 3 else []
    lines += [f'{indent}{name} = T.alloc_buffer((2,), "int32")' for name in own]
    written: list[str] = []
    for number in range(count):
        value = draw.choice(
            ["A[i] * 2", "A[i] + i", "A[0]", "C[0]"] + [f"{b}[{k}] + {number}" for b in written for k in (0, 1)] * 2
        )
        if written and draw.random() < 0.4:
            value = f"{draw.choice(written)}[0] * 3 + {value}"
        wrap = draw.random() < 0.5
        inner = indent + "    " if wrap else indent
        if wrap:
            lines.append(f'{indent}with T.block(""):')
        if number < len(own):
            lines.append(f"{inner}for k in range(2):")
            lines.append(f"{inner}    {own[number]}[k] = {value}")
            written.append(own[number])
        else:
            lines.append(f"{inner}C[{draw.choice(['i', 'i', 'i', '0'])}] = {value}")
    return "\n".join(lines)


def results(module: ModuleOp, sizes: list[int]) -> list[np.ndarray]:
    """What the program leaves in its buffers."""
    func = next(op for op in module.body.block.ops if isinstance(op, PrimFuncOp))
    found: list[np.ndarray] = []
    for n in sizes:
        generator = np.random.default_rng(n)
        values: dict[str, np.ndarray | np.int32] = {"n": np.int32(n)}
        for name in (parameter.data for parameter in func.param_names.data if parameter.data != "n"):
            values[name] = generator.integers(0, 10, SIZE if name in "AC" else 2).astype(np.int32)
        interpret_prim_func(func, values, module)
        found += [value for value in values.values() if isinstance(value, np.ndarray)]
    return found


def check(seed: int) -> bool:
    """One program; whether it was accepted."""
    text = program(seed)
    module, sizes = parse_mir(text), [0, 1, 2, 5, 11]
    expected = results(module, sizes)
    try:
        InjectSoftwarePipeline().apply(Context(), module)
    except MirError:
        return False
    assert find_errors(module) == [], text
    after = print_mir(module)
    assert print_mir(parse_mir(after)) == after, text
    for ours, theirs in zip(results(module, sizes), expected, strict=True):
        assert np.array_equal(ours, theirs), f"before:\n{text}\nafter:\n{after}"
    return True


def test_same_results() -> None:
    assert sum(map(check, range(60))) > 12


@pytest.mark.slow
def test_same_results_long() -> None:
    assert sum(map(check, range(1000, 2500))) > 300
