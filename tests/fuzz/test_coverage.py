"""Everything that a registry names is drawn: operators, ops and intrinsics, primitives, passes."""

from __future__ import annotations

import random

import pytest
from mirstack.dialects.relay.operator import all_operators
from mirstack.dialects.schedule.signature_table import signatures, te_signatures
from mirstack.dialects.tir import TIR, CallOp
from mirstack.dialects.tir.intrinsics import BINARY_MATH, BITWISE, FLOAT_TESTS, HORIZONTAL, OTHER_PURE, UNARY_MATH
from mirstack.fuzz.pipelines.fuzzer import NOT_DRAWN, ON_RELAY_PASSES, ON_TIR_PASSES
from mirstack.fuzz.relay.functional import FunctionalWriter as FunctionalWriter
from mirstack.fuzz.relay.graphs import deck
from mirstack.fuzz.relay.single import USES
from mirstack.fuzz.schedules.moves import ALL_MOVES, Player
from mirstack.fuzz.schedules.programs import random_blocks
from mirstack.fuzz.te.moves import move
from mirstack.fuzz.tir.writer import Writer
from mirstack.parser import parse_mir
from mirstack.passes.registry import PASSES
from mirstack.passes.schedule import Schedule, ScheduleError
from mirstack.support.diagnostics import MirError
from mirstack.support.walk import walk_ops

NOT_WRITTEN = {
    "tir.comm_reducer": "stands in TE programs",
    "tir.iter_var": "what T.attr on an axis of an old schedule names, which no interpreter runs",
    "tir.prefetch": "lowered TE schedules hold it, which `te` draws",
}
"""Ops that no function is written with, each with the reason."""

NOT_CALLED = {
    **dict.fromkeys(("isnullptr", "vectorlow", "vectorhigh", "vectorcombine"), "no lowering knows it"),
    **dict.fromkeys(
        ("call_llvm_pure_intrin", "undef", "vscale", "target", "tvm_thread_invariant"),
        "means something to one target only",
    ),
    **dict.fromkeys(
        ("abs", "ceildiv", "infinity", "max_value", "min_value"), "the text writes it, and reads it as other ops"
    ),
    "large_uint_imm": "the text of large constants has no such call",
    "ldexp": "its exponent is of another dtype, as no other function's is",
}
"""Intrinsics that no function calls, each with the reason."""


def test_every_relay_operator_is_drawn() -> None:
    """Consecutive programs deal the whole deck, which is the table."""
    count = -(-len(deck()) // USES)
    dealt = {deck()[(number * USES + n) % len(deck())] for number in range(count) for n in range(USES)}
    assert dealt == set(all_operators())


def test_every_form_of_function_is_drawn() -> None:
    drawn: set[str] = set()
    for seed in range(150):
        writer = FunctionalWriter(random.Random(seed))
        writer.program()
        drawn |= writer.drawn
    assert drawn >= {"?", "tail_loop", "loop", "list", "option", "tree", "reference", "closure", "closure_of_two", "twice", "branch", "let", "tuple"}  # fmt: skip


def test_every_tir_op_and_intrinsic_is_drawn() -> None:
    wanted = {op.name for op in TIR.operations} - NOT_WRITTEN.keys()
    wanted |= (UNARY_MATH | BINARY_MATH | BITWISE | FLOAT_TESTS | HORIZONTAL | OTHER_PURE) - NOT_CALLED.keys()
    missing = set(wanted)
    for seed in range(3000):
        try:
            module = parse_mir(Writer(random.Random(seed)).program())
        except MirError:
            continue  # divides by a constant 0
        for op in walk_ops(module):
            missing.discard(op.name)
            if isinstance(op, CallOp):
                missing.discard(op.intrinsic.data)
        if not missing:
            break
    assert not missing


def test_every_schedule_primitive_is_called() -> None:
    """Accepted or refused; most of them are accepted at times, which `--json` counts."""

    class Noting(Schedule):
        def apply(self, name, args, kwargs):
            missing.discard(name)
            return super().apply(name, args, kwargs)

    missing = set(signatures())
    rng = random.Random(0)
    for _ in range(1000):
        player = Player(Noting(parse_mir(random_blocks(rng)), seed=1), rng, ALL_MOVES)
        for _ in range(10):
            try:
                player.step()
            except (ScheduleError, IndexError):
                continue
        if not missing:
            break
    assert not missing


@pytest.mark.parametrize("name", te_signatures())
def test_every_te_primitive_is_known(name: str) -> None:
    """`move` has a case for each; it says so of a name that it does not know."""
    import inspect

    assert f'"{name}"' in inspect.getsource(move)


def test_every_pass_is_drawn_or_says_why_not() -> None:
    drawn = {text.partition("{")[0] for text in (*ON_RELAY_PASSES, *ON_TIR_PASSES)} | {"lower-te-to-tir"}
    assert {entry.name for entry in PASSES} == drawn | NOT_DRAWN.keys()
    assert not drawn & NOT_DRAWN.keys()
