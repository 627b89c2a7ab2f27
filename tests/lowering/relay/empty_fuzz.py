"""Operators on arguments with sizes of 0, natively against the interpreter: run as a program, one line of JSON each.

`python empty_fuzz.py OPERATOR…` empties each dimension of one use of each operator, alone and together with those of the same number
(from the front, and from the end) of the other arguments. It prints what `dynamic_fuzz.py` prints. Uses that the types refuse count for nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import mirstack
import numpy as np
from dynamic_fuzz import MOST_ELEMENTS, agrees, open_module, run_on, say
from mirstack.dialects.relay.operator import Operator, all_operators
from mirstack.fuzz.operators.programs import Drawn, module_of
from mirstack.fuzz.operators.sampling import flat, load_cases
from mirstack.lowering.driver.loading.executable import Executable
from mirstack.support.diagnostics import MirError
from test_native_operators import NATIVE, draws

Dims = list[tuple[int, int]]
"""(tensor, axis)."""


def emptied(arguments: tuple[Any, ...], dims: Dims) -> tuple[Any, ...]:
    """The arguments without elements along some dimensions."""
    count = iter(range(1 << 30))

    def change(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return tuple(map(change, value))
        number = next(count)
        for which, axis in dims:
            if which == number:
                value = np.take(value, [], axis)
        return value

    return tuple(map(change, arguments))


def choices(arrays: list[np.ndarray]) -> Iterator[Dims]:
    """Which dimensions are emptied together."""
    for which, array in enumerate(arrays):
        for axis in range(array.ndim):
            yield [(which, axis)]
    for axis in range(max((array.ndim for array in arrays), default=0)):
        those = [(which, array.ndim) for which, array in enumerate(arrays) if array.ndim > axis]
        yield [(which, axis) for which, _ in those]
        yield [(which, rank - 1 - axis) for which, rank in those]


Outcome = list[np.ndarray] | str
"""The results, or why the program or the sizes are refused."""


def outcome(operator: Operator, use: Drawn, **target: Any) -> Outcome:
    """What the program of one use computes, its sizes known."""
    try:
        return run_on(mirstack.compile(module_of(operator, [use]), entry="main", **target), use)
    except MirError as error:
        return str(error)


def opened(operator: Operator, use: Drawn) -> tuple[Executable, Executable] | None:
    """The program of a use with every dimension `?` but those of 0, natively and interpreted; None where it is refused."""
    try:
        module = open_module(operator, use)
        native = mirstack.compile(module, entry="main", opt_level=0, threads=1)
    except MirError:
        return None
    return native, mirstack.compile(module, entry="main", target="interp")


def differ(operator: Operator, use: Drawn, native: Outcome, wanted: Outcome) -> str | None:
    """How native code differs from the interpreter; None where it does not."""
    if isinstance(native, str) or isinstance(wanted, str):
        same = isinstance(native, str) and isinstance(wanted, str)
    else:
        same = [a.shape for a in native] == [b.shape for b in wanted]
        same = same and all(agrees(operator, use, a, b) for a, b in zip(native, wanted, strict=True))
    return None if same else f"the interpreter {wanted}; native {native}"


def faults(operator: Operator, use: Drawn) -> Iterator[str | None]:
    """For each emptied use None, or how native code differs from the interpreter, sizes known, `?`, and `?` but for the 0."""
    seen: set[tuple[tuple[int, ...], ...]] = set()
    executables = opened(operator, use)
    for dims in choices(flat(use.arguments)):
        empty = Drawn(use.case, use.attrs, emptied(use.arguments, dims))
        shapes = tuple(array.shape for array in flat(empty.arguments))
        if shapes in seen:
            continue
        seen.add(shapes)
        runs: dict[str, tuple[Outcome, Outcome]] = {}
        try:
            if executables is not None:
                runs["of `?`"] = run_on(executables[0], empty), run_on(executables[1], empty)
            if (beside := opened(operator, empty)) is not None:
                runs["of `?` beside 0"] = run_on(beside[0], empty), run_on(beside[1], empty)
            module_of(operator, [empty])
            native = outcome(operator, empty, opt_level=0, threads=1)
            runs["of known sizes"] = native, outcome(operator, empty, target="interp")
        except MirError:
            pass  # The types refuse it.
        except Exception as error:
            yield f"shapes {shapes}: {type(error).__name__}: {error}"
        for what, (native, wanted) in runs.items():
            difference = differ(operator, use, native, wanted)
            yield None if difference is None else f"shapes {shapes} {what}: {difference}"


def main() -> None:
    """Runs the operators that are named, or all."""
    load_cases()
    for name in sys.argv[1:] or NATIVE:
        say("begin", name)
        operator, runs = all_operators()[name], 0
        for use in list(draws(name, 10))[-1:]:
            if sum(a.size for a in flat(use.arguments)) > MOST_ELEMENTS:
                continue
            for fault in faults(operator, use):
                runs += 1
                if fault is not None:
                    say("fault", name, f"{use} {fault}")
        say("end", name, runs)


if __name__ == "__main__":
    main()
