"""The ways to run a program: the interpreter, and native code with every option.

Levels, processors that this machine can run, one thread or two, with strict math or without.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from ..api.compile import compile
from ..lowering.driver.loading.executable import Executable
from ..parser import parse_mir, print_mir
from ..support.diagnostics import MirError
from .case import Case, Verdict, reason

PROCESSORS = ("x86-64", "haswell", "skylake-avx512", "sapphirerapids")
LEVELS = (0, 1, 2, 3)
THREADS = (1, 2)

STRICT = 0.2
"""How often floats are to be computed as the interpreter does."""

Way = tuple[int, str, int, bool]
"""Optimization level, processor ("" for this machine's), threads, strict math."""


@cache
def processors() -> tuple[str, ...]:
    """Returns those of `PROCESSORS` whose code runs here, and this machine itself as ""."""
    from ..support.target import require_host

    found: list[str] = [""]
    for name in PROCESSORS:
        try:
            require_host(name)
        except MirError:
            continue
        found.append(name)
    return tuple(found)


def draw_ways(rng: random.Random, count: int, levels: Sequence[int] = LEVELS) -> list[Way]:
    """Draws some ways, of different levels."""
    chosen = rng.sample(list(levels), min(count, len(levels)))
    ways = [(level, rng.choice(processors()), rng.choice(THREADS)) for level in chosen]
    return [(*way, rng.random() < STRICT) for way in ways]


def ways_of(options: Mapping[str, Any]) -> list[Way]:
    """Returns the ways of a case; one that says nothing of strict math is without."""
    return [(level, cpu, threads, bool(strict)) for level, cpu, threads, *strict in options.get("ways", ())]


def spoken(way: Way) -> str:
    """Returns the options of `mir-run` for a way."""
    level, cpu, threads, strict = way
    return f"-O {level}{f' --mcpu {cpu}' if cpu else ''} --threads {threads}{' --strict-math' if strict else ''}"


def interpret(module: ModuleOp, entry: str | None, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Interprets the module on copies of the inputs. Raises MirError where the interpreter refuses."""
    with np.errstate(all="ignore"):
        return _run(compile(module, "interp", entry=entry), inputs)


def run_natively(
    module: ModuleOp, entry: str | None, inputs: Mapping[str, np.ndarray], way: Way
) -> dict[str, np.ndarray]:
    """Runs native code on copies of the inputs. Raises MirError where it is refused."""
    level, cpu, threads, strict = way
    executable = compile(
        module, "cpu", entry=entry, opt_level=level, cpu=cpu or None, threads=threads, strict_math=strict, cache=False
    )
    return _run(executable, inputs)


def check_natively(
    verdict: Verdict,
    module: ModuleOp,
    case: Case,
    differs: Callable[[dict[str, np.ndarray], Way], str | None],
    ways: Sequence[Way] | None = None,
) -> None:
    """Runs native code in the case's ways (or in `ways`) and notes where `differs` describes a difference."""
    for way in ways_of(case.options) if ways is None else ways:
        try:
            got = run_natively(module, case.options.get("entry", "main"), case.inputs, way)
        except MirError as error:
            verdict.refused = reason(error, "native")
            continue
        except Exception as error:
            verdict.fail_by(error, f"at {spoken(way)}")
            continue
        verdict.compared += 1
        wrong = differs(got, way)
        if wrong is not None:
            verdict.fail("results", "", f"at {spoken(way)} {wrong}")


def check_printed(verdict: Verdict, module: ModuleOp, what: str = "what is printed", key: str = "") -> bool:
    """Tells whether a program prints, reads and prints the same; otherwise notes the failure."""
    printed = print_mir(module)
    try:
        if print_mir(parse_mir(printed)) == printed:
            return True
        verdict.fail("text", key or "printed otherwise", f"{what} reads as another program")
    except MirError as error:
        verdict.fail("text", key or "not read", f"{what} is not read: {error.diagnostics[0].message}")
    return False


def _run(executable: Executable, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Runs on copies of the inputs. What a schedule has given another name is found by its place."""
    names = [param.name for param in executable.params]
    before = list(inputs)
    if set(names) == set(before):
        return executable.run(copied(inputs))
    if len(names) != len(before):
        raise ValueError(f"{executable.name} takes {', '.join(names)}, not {', '.join(before)}")
    results = executable.run(dict(zip(names, copied(inputs).values(), strict=True)))
    old = dict(zip(names, before, strict=True))
    return {old.get(name, name): array for name, array in results.items()}


def copied(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the arrays, to be written into."""
    return {name: array.copy() for name, array in inputs.items()}
