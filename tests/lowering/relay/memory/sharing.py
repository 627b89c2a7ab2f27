"""What tests of concatenations, slices and reshapes without kernels share."""

from __future__ import annotations

import re
from typing import Any

import mirstack
import numpy as np
from mirstack.dialects.relay import ir as relay
from mirstack.lowering.driver.loading.executable import flatten
from mirstack.lowering.pipeline import Options, graph_passes
from mirstack.lowering.relay.memory.frame import Frame, plan_frame
from mirstack.support.walk import walk_ops
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

Arrays = list[np.ndarray[Any, Any]]


def prepared(program: str | ModuleOp, last: str = "lower-relay-to-te", opt_level: int = 3) -> ModuleOp:
    """The program after the graph's passes up to `last`."""
    module = mirstack.parse(program) if isinstance(program, str) else program
    for step in graph_passes(Options(opt_level=opt_level)):
        step.apply(Context(), module)
        if step.name == last:
            break
    return module


def kernels(text: str) -> list[str]:
    """The kernels that the program calls, in order."""
    return called(prepared(text))


def called(module: ModuleOp) -> list[str]:
    """The kernels that a lowered program calls, in order."""
    return [
        op.callee.root_reference.data.removeprefix("fused_")
        for op in walk_ops(module)
        if isinstance(op, relay.CallTirOp)
    ]


def frame_of(text: str) -> Frame:
    """The memory of @main."""
    (function,) = [op for op in prepared(text).ops if isinstance(op, relay.FuncOp) and op.sym_name.data == "main"]
    return plan_frame(function.body.block, refs=False)


def inputs(text: str, seed: int = 0) -> Arrays:
    """Random arguments of @main."""
    rng = np.random.default_rng(seed)
    header = text[text.index("@main") : text.index("{", text.index("@main"))].split("->")[0]
    arrays: Arrays = []
    for dims, dtype in re.findall(r"Tensor\[\(([\d, ]*)\), (\w+)\]", header):
        drawn = rng.standard_normal([int(d) for d in re.findall(r"\d+", dims)])
        arrays.append((drawn * (20 if "int" in dtype else 1)).astype(dtype))
    return arrays


def check(text: str, tolerance: float = 1e-5) -> None:
    """Native code gives what numpy gives, and what one call leaves in memory does not matter to the next."""
    native = mirstack.compile(mirstack.parse(text), entry="main", cache=False)
    meaning = mirstack.compile(mirstack.parse(text), entry="main", target="interp")
    for seed in range(2):
        arrays = inputs(text, seed)
        for ours, wanted in zip(flatten(native(*arrays)), flatten(meaning(*arrays)), strict=True):
            expected = np.asarray(wanted, "f8")
            np.testing.assert_allclose(np.asarray(ours, "f8"), expected, tolerance, tolerance * np.abs(expected).max())


def T(*shape: int, dtype: str = "float32") -> str:
    """A tensor type."""
    dims = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    return f"Tensor[({dims}), {dtype}]"
