"""inject-virtual-thread on random programs: what comes out computes what the threads do one after the other."""

from __future__ import annotations

import random

import numpy as np
import pytest
from mirstack.dialects.tir import LaunchThreadOp, PrimFuncOp
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.tir.threads.inject_virtual_thread import InjectVirtualThread
from mirstack.support.verify import find_errors
from mirstack.support.walk import walk_ops
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

SIZE = 64


def program(seed: int) -> str:
    """Threads that each write elements of their own, through memory of their own."""
    draw = random.Random(seed)
    x, y = draw.choice([1, 2, 3, 17]), draw.choice([1, 2])
    lines = [
        "@T.prim_func",
        f'def main(A: T.Buffer(({SIZE},), "int32"), C: T.Buffer(({SIZE},), "int32"), n: T.int32):',
        f'    vx = T.launch_thread("vthread.x", {x})',
        f'    vy = T.launch_thread("vthread.y", {y})',
    ]
    own: list[str] = []
    scalars = ["vx", "vy", "n", "1"]

    def value() -> str:
        parts = [draw.choice(scalars), f"A[({draw.choice(scalars)} + {draw.choice(scalars)}) % {SIZE}]"]
        parts += [f"{draw.choice(own)}[{draw.randint(0, 3)}]"] if own else []
        return " + ".join(draw.sample(parts, draw.randint(1, len(parts))))

    for number in range(draw.randint(1, 5)):
        kind = draw.randrange(5)
        if kind == 0:
            lines.append(f"    x{number}: T.int32 = {value()}")
            scalars.append(f"x{number}")
            continue
        if kind < 4 or not own:
            name = f"b{number}"
            if draw.random() < 0.5:
                lines.append(f'    {name} = T.decl_buffer((4,), "int32")')
            else:
                lines.append(f'    {name}_p = T.allocate([4], "int32", "local")')
                lines.append(f'    {name} = T.Buffer((4,), "int32", data={name}_p, scope="local")')
            lines.append(f"    for j in range(4):\n        {name}[j] = {value()} + j")
            own.append(name)
        name = draw.choice(own)
        condition = f"{draw.choice(scalars)} < {draw.choice(scalars)}"
        if draw.random() < 0.5:
            lines.append(f"    if {condition}:\n        {name}[{draw.randint(0, 3)}] = {value()}")
        if draw.random() < 0.4:
            lines.append(
                f"    for k in range({draw.choice(['vx + 1', '2', 'n'])}):\n        {name}[k % 4] = {value()} + k"
            )
    lines.append(f"    C[(vx * 2 + vy) % {SIZE}] = {value()}")
    return "\n".join(lines)


def results(module: ModuleOp) -> list[np.ndarray]:
    """What the program leaves in `C`."""
    func = next(op for op in module.body.block.ops if isinstance(op, PrimFuncOp))
    found: list[np.ndarray] = []
    for n in (0, 1, 3):
        a = np.random.default_rng(n).integers(0, 10, SIZE).astype(np.int32)
        c = np.zeros(SIZE, np.int32)
        interpret_prim_func(func, {"A": a, "C": c, "n": np.int32(n)}, module)
        found.append(c)
    return found


def check(seed: int) -> None:
    """One program."""
    text = program(seed)
    module = parse_mir(text)
    expected = results(module)
    InjectVirtualThread().apply(Context(), module)
    assert find_errors(module) == [], text
    assert not any(isinstance(op, LaunchThreadOp) for op in walk_ops(module))
    after = print_mir(module)
    assert print_mir(parse_mir(after)) == after, text
    for ours, theirs in zip(results(module), expected, strict=True):
        assert np.array_equal(ours, theirs), f"before:\n{text}\nafter:\n{after}"


def test_same_results() -> None:
    for seed in range(15):
        check(seed)


@pytest.mark.slow
def test_same_results_long() -> None:
    for seed in range(1000, 2000):
        check(seed)
