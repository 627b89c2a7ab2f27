"""Checks Relay programs natively against the interpreter: single uses, graphs, recursive functions."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from ...dialects.relay.operator import OperatorOp, OpPattern
from ...dialects.relay.text import type_text
from ...parser import parse_mir, print_mir
from ...support.diagnostics import MirError
from ...support.walk import walk_ops
from ..case import Case, Verdict, reason
from ..compare import magnitude
from ..operators.uses import new_use
from ..reduce import ON_RELAY
from ..ways import Way, check_natively, check_printed, draw_ways, interpret
from .functional import functional_program
from .graphs import random_graph
from .rounding import Rounding, difference
from .single import batch_of_uses

ROUNDING = Rounding(ulps=4, largest=2.0**120)
"""Near the largest float32 the order of a sum decides whether it overflows, and two that overflow to NaN."""
BY_ELEMENT = (OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.INJECTIVE)
IN_FLOAT32 = ("image.", "vision.", "nn.upsampling", "dft", "stft")
"""How the names of operators begin that compute places, or the factors of a transform, in float32 where others do so in float64."""


class RelayFuzzer:
    """Draws programs of three sorts in rotation; runs each by the interpreter and in native ways."""

    shrinkers = ON_RELAY

    def draw(self, seed: int, number: int) -> Case:
        """Draws the case of a number."""
        rng = random.Random(f"relay/{seed}/{number}")
        module, inputs, draws = draw_program(seed, number, rng)
        return Case("relay", print_mir(module), inputs, {"ways": draw_ways(rng, 1 + (rng.random() < 0.15))}, draws)

    def check(self, case: Case) -> Verdict:
        """Runs the program."""
        verdict = Verdict()
        try:
            module = parse_mir(case.text)
        except MirError as error:
            verdict.fail("text", "not read", f"what was printed is not read: {error.diagnostics[0].message}")
            return verdict
        if print_mir(module) != case.text:
            check_printed(verdict, module)
        try:
            wanted = interpret(module, "main", case.inputs)
        except MirError as error:
            verdict.refused = reason(error, "interpreter")
            return verdict
        except Exception as error:
            verdict.fail_by(error, "in the interpreter")
            return verdict
        check_natively(verdict, module, case, lambda got, way: compared(module, case, wanted, got, way))
        return verdict


def compared(
    module: ModuleOp, case: Case, wanted: dict[str, np.ndarray], got: dict[str, np.ndarray], way: Way
) -> str | None:
    """Describes differences beyond rounding; with strict math only sums and float64 may round."""
    rounding: Rounding | None = ROUNDING
    if any(op.OPERATOR.name.startswith(IN_FLOAT32) for op in walk_ops(module) if isinstance(op, OperatorOp)):
        # A position that is off weights an element's neighbour: the result is off by a part of that, not of itself.
        rounding = replace(ROUNDING, unit=2.0**-21, absolute=2.0**-21 * magnitude(case.inputs))
    elif way[-1] and _is_exact(module):
        rounding = None
    with np.errstate(all="ignore"):
        inputs = [case.inputs[name] for name in _parameters(module)]
        return difference(module, inputs, list(wanted.values()), list(got.values()), rounding)


def _is_exact(module: ModuleOp) -> bool:
    """Tells whether strict math promises every bit (docs/rules.md): no sums, nothing of float64."""
    uses = [op for op in walk_ops(module) if isinstance(op, OperatorOp)]
    return all(op.OPERATOR.pattern in BY_ELEMENT for op in uses) and not any(
        "float64" in type_text(value.type) for op in uses for value in (*op.operands, *op.results)
    )


def _parameters(module: ModuleOp) -> list[str]:
    from ...dialects.relay import FuncOp

    main = next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main")
    return [name.data for name in main.param_names.data]


def draw_program(seed: int, number: int, rng: random.Random) -> tuple[ModuleOp, dict[str, np.ndarray], frozenset[str]]:
    """Returns a module whose entry is `main`, inputs for it, and the names of what it is made of."""
    match number % 10:
        case 0 | 1 | 2 | 3:
            # What is wrong shows in small programs nearly always, and they are many more in the same time.
            size = rng.randint(*rng.choices(((1, 4), (5, 10), (11, 24)), (14, 5, 1))[0])
            graph = random_graph(seed * 1_000_003 + number, size, use_of=new_use)
            inputs = {f"x{n}": array for n, array in enumerate(graph.inputs)}
            return graph.module, inputs, graph.operators
        case 9:
            text, inputs, draws = functional_program(rng)
            return parse_mir(text), inputs, draws
        case _:
            return batch_of_uses(rng, number)


FUZZER = RelayFuzzer()
