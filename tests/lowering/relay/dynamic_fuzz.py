"""Operators with every dimension `?`, at sizes that fit and at sizes one off: run as a program, one line of JSON each.

`python dynamic_fuzz.py USES OPERATOR…` runs up to so many uses of each operator. It prints, for each operator, `["begin", name]`, then `["fault", name, what]` for
each fault, and `["end", name, runs]`. It is a program of its own so that a crash ends it, and not the tests.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[2] / "dialects" / "relay"))

import mirstack
from mirstack.dialects.relay.operator import Operator, all_operators
from mirstack.fuzz.operators.programs import Drawn, module_of
from mirstack.fuzz.operators.sampling import flat, load_cases
from mirstack.lowering.driver.loading.executable import Executable
from mirstack.support.diagnostics import MirError
from test_native_operators import NATIVE, agree, draws
from xdsl.dialects.builtin import ModuleOp

MOST_ELEMENTS = 1 << 16


def open_module(operator: Operator, use: Drawn) -> ModuleOp:
    """The use with every dimension of every argument `?`; where the types refuse that, vectors of integers, which may be
    shapes, have a known length."""
    try:
        return module_of(operator, [use], lambda array: True)
    except MirError:
        return module_of(operator, [use], lambda array: array.ndim != 1 or array.dtype.kind != "i")


def resized(arguments: tuple[Any, ...], which: int, axis: int, by: int) -> tuple[Any, ...]:
    """The arguments, one dimension of one tensor longer or shorter."""
    count = iter(range(1 << 30))

    def change(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return tuple(map(change, value))
        if next(count) != which:
            return value
        take = np.arange(value.shape[axis] + by) % value.shape[axis]
        return np.take(value, take, axis)

    return tuple(map(change, arguments))


def run_on(executable: Executable, use: Drawn) -> list[np.ndarray] | str:
    """The results, or why the sizes are refused."""
    try:
        return flat(executable(*flat(use.arguments)))
    except (MirError, ValueError) as error:
        return str(error)


def variations(use: Drawn) -> Iterator[tuple[str, Drawn]]:
    """The use as it was drawn, then with each dimension one off."""
    yield "as drawn", use
    for which, array in enumerate(flat(use.arguments)):
        for axis in range(array.ndim):
            for by in (-1, 1):
                if array.shape[axis] > 0 and array.shape[axis] + by > 0:
                    changed = resized(use.arguments, which, axis, by)
                    yield f"dimension {axis} of tensor {which} {by:+}", Drawn(use.case, use.attrs, changed)


def agrees(operator: Operator, use: Drawn, got: np.ndarray, wanted: np.ndarray) -> bool:
    """Whether two results are the same numbers, up to rounding: scales that follow from sizes are rounded, too."""
    if wanted.dtype.kind in "iub":
        return agree(operator, got, wanted)
    rtol, atol = use.case.tolerance("float32" if wanted.dtype.itemsize >= 4 else "bfloat16")
    return np.allclose(got.astype(np.float64), wanted.astype(np.float64), 4 * rtol, 4 * atol, equal_nan=True)


def faults(operator: Operator, use: Drawn, opt_level: int) -> Iterator[str | None]:
    """For each run None, or how native code differs from the interpreter of the same program."""
    try:
        module = open_module(operator, use)
        executable = mirstack.compile(module, "cpu", entry="main", opt_level=opt_level, threads=1)
    except MirError as error:
        yield f"not compiled: {error}"
        return
    interpreter = mirstack.compile(module, "interp", entry="main")
    for what, varied in variations(use):
        got, wanted = run_on(executable, varied), run_on(interpreter, varied)
        if isinstance(got, str) or isinstance(wanted, str):
            if isinstance(got, str) and isinstance(wanted, str):
                yield None
            elif isinstance(got, str):
                yield f"{what}: refused, but not by the interpreter: {got}"
            else:
                yield f"{what}: a result of shapes {[a.shape for a in got]}, but the interpreter refuses: {wanted}"
        elif [a.shape for a in got] != [b.shape for b in wanted]:
            yield f"{what}: shapes {[a.shape for a in got]} instead of {[b.shape for b in wanted]}"
        elif not all(agrees(operator, use, a, b) for a, b in zip(got, wanted, strict=True)):
            yield f"{what}: wrong numbers"
        else:
            yield None


def say(*words: Any) -> None:
    """One line of JSON, at once: what comes next may crash."""
    print(json.dumps(words), flush=True)


def run(name: str, uses: int) -> None:
    """One operator."""
    say("begin", name)
    operator = all_operators()[name]
    runs = 0
    for use in list(draws(name, 10 * uses))[-uses:]:
        if sum(a.size for a in flat(use.arguments)) > MOST_ELEMENTS:
            continue
        for opt_level in (0, 3):
            for fault in faults(operator, use, opt_level):
                runs += 1
                if fault is not None:
                    say("fault", name, f"{use} at level {opt_level}: {fault}")
    say("end", name, runs)


def main() -> None:
    """Runs the operators that are named, or all."""
    load_cases()
    uses, *names = sys.argv[1:]
    for name in names or NATIVE:
        run(name, int(uses))


if __name__ == "__main__":
    main()
