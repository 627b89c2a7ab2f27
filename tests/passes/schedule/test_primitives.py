"""Schedule primitives: what they do, that the result computes the same, what they refuse and how they say it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mirstack.dialects.tir import ForOp, LtOp, PrimFuncOp
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.dialects.tir.types import type_to_dtype
from mirstack.fuzz.schedules.programs import CHAIN, MATMUL, STENCIL
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.schedule import Schedule, ScheduleError
from mirstack.passes.schedule.engine.primitive import names
from mirstack.passes.schedule.engine.state import State
from mirstack.passes.schedule.primitives.split import split
from mirstack.support.verify import verify

UNIT = """
@T.prim_func
def main(A: T.Buffer((1, 30), "float32"), C: T.Buffer((30,), "float32")):
    B = T.alloc_buffer((1, 30))
    for i, j in T.grid(1, 30):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[0, vj] = A[vi, vj] * T.float32(2)
    for i in range(30):
        with T.block("C"):
            vi = T.axis.spatial(30, i)
            C[vi] = B[0, vi]
"""


def arguments(module: Any) -> list[np.ndarray[Any, Any]]:
    """Fixed random data for the parameters of the one function."""
    (function,) = [op for op in module.body.block.ops if isinstance(op, PrimFuncOp)]
    generator = np.random.default_rng(1)
    return [
        generator.integers(0, 9, param.type.static_shape).astype(type_to_dtype(param.type.dtype))  # pyright: ignore[reportAttributeAccessIssue]
        for param in function.params
    ]


def run(module: Any) -> list[np.ndarray[Any, Any]]:
    """The parameters after the one function ran on fixed random data."""
    (function,) = [op for op in module.body.block.ops if isinstance(op, PrimFuncOp)]
    values = dict(zip([name.data for name in function.param_names.data], arguments(module), strict=True))
    interpret_prim_func(function, values, module)
    return list(values.values())


def scheduled(text: str, steps: Callable[[Schedule], object]) -> str:
    """The script after the steps; checks that it verifies, reads back, and computes what it did before."""
    module = parse_mir(text)
    expected = run(module)
    steps(Schedule(module))
    verify(module)
    for after, before in zip(run(module), expected, strict=True):
        np.testing.assert_allclose(after, before)
    printed = print_mir(module)
    assert print_mir(parse_mir(printed)) == printed
    return printed


def refused(text: str, steps: Callable[[Schedule], object]) -> str:
    """The message of the refusal that the steps end in; checks that the refused primitive changed nothing."""
    module = parse_mir(text)
    schedule = Schedule(module)
    before: list[str] = []

    class Watched:
        def __getattr__(self, name: str) -> Any:
            before[:] = [print_mir(module)]
            return getattr(schedule, name)

    with pytest.raises(ScheduleError) as error:
        steps(Watched())  # type: ignore[arg-type]
    assert print_mir(module) == before[0]
    return str(error.value)


def test_split_exact() -> None:
    text = scheduled(CHAIN, lambda s: s.split(s.get_loops(s.get_block("B"))[1], [None, 5]))
    assert "for i, j_0, j_1 in T.grid(16, 6, 5):" in text
    assert "vj = T.axis.spatial(30, j_0 * 5 + j_1)" in text


def test_split_predicate() -> None:
    text = scheduled(CHAIN, lambda s: s.split(s.get_loops(s.get_block("B"))[1], [None, 8]))
    assert "T.where(j_0 * 8 + j_1 < 30)" in text


def test_split_of_a_loop_around_statements() -> None:
    """Statements in no block run under an `if`, whose condition nothing else uses."""
    text = """# from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((10,), "float32")):
    for i in range(10):
        A[i] = T.float32(1)
"""

    module = parse_mir(text)
    split(State(module), next(op for op in module.walk() if isinstance(op, ForOp)), [3, None])
    verify(module)
    assert "if i_0 * 4 + i_1 < 10:" in print_mir(module)
    assert len([op for op in module.walk() if isinstance(op, LtOp)]) == 1


def test_split_refusals() -> None:
    def loop(s: Schedule) -> Any:
        return s.get_loops(s.get_block("B"))[1]

    assert "2 factors of loop 'j' are None" in refused(CHAIN, lambda s: s.split(loop(s), [None, None]))
    assert "make 28 iterations, but loop 'j' has 30" in refused(CHAIN, lambda s: s.split(loop(s), [4, 7]))
    assert "0 is not a factor of loop 'j'" in refused(CHAIN, lambda s: s.split(loop(s), [None, 0]))

    def annotated(s: Schedule) -> None:
        s.annotate(loop(s), "key", 1)
        s.split(loop(s), [None, 5])

    assert "has annotations (key)" in refused(CHAIN, annotated)


def test_fuse() -> None:
    text = scheduled(CHAIN, lambda s: s.fuse(*s.get_loops(s.get_block("B"))))
    assert "for i_j_fused in range(480):" in text
    assert "i_j_fused // 30" in text and "i_j_fused % 30" in text


def test_fuse_needs_nested_loops() -> None:
    def steps(s: Schedule) -> None:
        s.fuse(s.get_loops(s.get_block("B"))[0], s.get_loops(s.get_block("C"))[0])

    assert "loop 'i' is not the only thing directly in loop 'i'" in refused(CHAIN, steps)


def test_reorder() -> None:
    text = scheduled(MATMUL, lambda s: s.reorder(*reversed(s.get_loops(s.get_block("C")))))
    assert "for k, j, i in T.grid(16, 20, 24):" in text


def test_reorder_refusals() -> None:
    def twice(s: Schedule) -> None:
        i = s.get_loops(s.get_block("C"))[0]
        s.reorder(i, i)

    def apart(s: Schedule) -> None:
        s.reorder(s.get_loops(s.get_block("B"))[0], s.get_loops(s.get_block("C"))[0])

    assert "loop 'i' is given twice" in refused(MATMUL, twice)
    assert "are not nested in each other" in refused(CHAIN, apart)


def test_kinds() -> None:
    def steps(s: Schedule) -> None:
        i, j = s.get_loops(s.get_block("B"))
        s.parallel(i)
        s.vectorize(j)
        s.unroll(s.get_loops(s.get_block("C"))[1])

    text = scheduled(CHAIN, steps)
    assert "T.parallel(16)" in text and "T.vectorized(30)" in text and "T.unroll(30)" in text


def test_parallel_reduction_is_refused() -> None:
    message = refused(MATMUL, lambda s: s.parallel(s.get_loops(s.get_block("C"))[2]))
    assert "parallel: loop 'k' drives axis 'vk' of block 'C', which is not a spatial axis" in message
    assert "rfactor loop 'k'" in message and "('i', 'j')" in message


def test_bind() -> None:
    text = scheduled(CHAIN, lambda s: s.bind(s.get_loops(s.get_block("B"))[0], "threadIdx.x"))
    assert 'T.thread_binding(16, thread="threadIdx.x")' in text
    assert "no thread axis 'threadIdx.w'" in refused(
        CHAIN, lambda s: s.bind(s.get_loops(s.get_block("B"))[0], "threadIdx.w")
    )


def test_annotate() -> None:
    def steps(s: Schedule) -> None:
        block = s.get_block("B")
        s.annotate(block, "a", [1, 2])
        s.annotate(block, "b", "x")
        s.unannotate(block, "a")

    assert 'T.block_attr({"b": "x"})' in scheduled(CHAIN, steps)
    assert "has no annotation 'z'" in refused(CHAIN, lambda s: s.unannotate(s.get_block("B"), "z"))


def test_cache_read_and_write() -> None:
    def steps(s: Schedule) -> None:
        block = s.get_block("C")
        s.cache_read(block, 0, "local")
        s.cache_write(block, 0, "local")

    text = scheduled(MATMUL, steps)
    assert 'with T.block("A_local"):' in text and 'with T.block("C_local"):' in text


def test_cache_between_stages_of_one_nest() -> None:
    """The copy goes between producer and consumer, and holds what one turn needs."""

    def steps(s: Schedule) -> None:
        producer, consumer = s.get_block("B"), s.get_block("C")
        s.compute_at(producer, s.get_loops(consumer)[0])
        s.cache_read(consumer, 0, "local")
        s.cache_write(producer, 0, "local")

    scheduled(CHAIN, steps)


def test_cache_refusals() -> None:
    assert "reads no buffer number 7" in refused(CHAIN, lambda s: s.cache_read(s.get_block("C"), 7, "local"))
    assert "there is no storage scope 'fast'" in refused(CHAIN, lambda s: s.cache_write(s.get_block("C"), 0, "fast"))


def test_compute_inline() -> None:
    text = scheduled(CHAIN, lambda s: s.compute_inline(s.get_block("B")))
    assert "C[vi, vj] = A[vi, vj] * T.float32(2) + T.float32(1)" in text and "alloc_buffer" not in text
    message = refused(CHAIN, lambda s: s.compute_inline(s.get_block("C")))
    assert "'C' is not an intermediate buffer" in message
    assert "block 'C' is more than one store" in refused(MATMUL, lambda s: s.compute_inline(s.get_block("C")))


def test_compute_inline_takes_axes_of_one_turn_for_0() -> None:
    text = scheduled(UNIT, lambda s: s.compute_inline(s.get_block("B")))
    assert "C[vi] = A[0, vi] * T.float32(2)" in text and "alloc_buffer" not in text


def test_reverse_compute_inline() -> None:
    text = scheduled(CHAIN, lambda s: s.reverse_compute_inline(s.get_block("C")))
    assert "C[vi, vj] = A[vi, vj] * T.float32(2) + T.float32(1)" in text
    assert "the producer, block 'C', is not a complete block: axis 'vk' is not a spatial axis" in refused(
        MATMUL, lambda s: s.reverse_compute_inline(s.get_block("D"))
    )


def test_compute_at() -> None:
    text = scheduled(CHAIN, lambda s: s.compute_at(s.get_block("B"), s.get_loops(s.get_block("C"))[0]))
    assert "for i in range(16):\n        for ax0 in range(30):" in text


def test_compute_at_window() -> None:
    def steps(s: Schedule) -> None:
        block = s.get_block("C")
        outer, _ = s.split(s.get_loops(block)[0], [None, 8])
        s.compute_at(s.get_block("B"), outer)

    text = scheduled(STENCIL, steps)
    assert "for ax0 in range(10):" in text and "T.axis.spatial(34, i_0 * 8 + ax0)" in text


def test_compute_at_refusals() -> None:
    assert "writes 'C', an output" in refused(
        CHAIN, lambda s: s.compute_at(s.get_block("C"), s.get_loops(s.get_block("B"))[0])
    )
    assert "loop 'i' is around block 'B' already" in refused(
        CHAIN, lambda s: s.compute_at(s.get_block("B"), s.get_loops(s.get_block("B"))[0])
    )


def test_reverse_compute_at() -> None:
    text = scheduled(MATMUL, lambda s: s.reverse_compute_at(s.get_block("D"), s.get_loops(s.get_block("C"))[0]))
    assert "for ax0 in range(20):" in text
    message = refused(MATMUL, lambda s: s.reverse_compute_at(s.get_block("D"), s.get_loops(s.get_block("C"))[2]))
    assert "reduces axis 'vk' over a loop around this place, so that block 'D' would read unfinished sums" in message


def test_decompose_reduction() -> None:
    text = scheduled(MATMUL, lambda s: s.decompose_reduction(s.get_block("C"), s.get_loops(s.get_block("C"))[1]))
    assert 'with T.block("C_init"):' in text and 'with T.block("C_update"):' in text

    def too_low(s: Schedule) -> None:
        block = s.get_block("C")
        i, j, k = s.get_loops(block)
        s.reorder(k, i, j)
        s.decompose_reduction(block, j)

    assert "loop 'k' drives a reduction axis of block 'C' and is around loop 'j'" in refused(MATMUL, too_low)


def test_set_scope() -> None:
    assert 'scope="shared"' in scheduled(CHAIN, lambda s: s.set_scope(s.get_block("B"), 0, "shared"))
    assert "'C' is not an allocation of this function" in refused(
        CHAIN, lambda s: s.set_scope(s.get_block("C"), 0, "local")
    )


def test_transform_layout() -> None:
    text = scheduled(CHAIN, lambda s: s.transform_layout(s.get_block("B"), "B", lambda i, j: [j // 10, i, j % 10]))
    assert "B = T.alloc_buffer((3, 16, 10))" in text and "B[vj // 10, vi, vj % 10]" in text
    message = refused(CHAIN, lambda s: s.transform_layout(s.get_block("B"), "B", lambda i, j: [i + j]))
    assert "cannot be shown to keep all elements apart" in message


def test_pad_einsum() -> None:
    text = scheduled(MATMUL, lambda s: s.pad_einsum(s.get_block("C"), [16, 16, 1]))
    assert "A_pad = T.alloc_buffer((32, 16))" in text and "T.grid(32, 32, 16)" in text
    assert "has 3 axes, but padding has 2 numbers" in refused(
        MATMUL, lambda s: s.pad_einsum(s.get_block("C"), [16, 16])
    )


def test_tiled_matmul() -> None:
    """The scheme of contractions by hand: pad, pack, tile, fuse what follows, vectorize, decompose."""

    def steps(s: Schedule) -> None:
        block = s.get_block("C")
        s.pad_einsum(block, [5, 16, 1])
        s.compute_inline(s.get_block("C_pad"))
        i, j, k = s.get_loops(block)
        io, ii = s.split(i, [None, 5])
        jo, ji = s.split(j, [None, 16])
        s.reorder(jo, io, k, ii, ji)
        s.compute_at(s.get_block("B_pad"), jo)
        s.reverse_compute_at(s.get_block("D"), io)
        s.vectorize(ji)
        s.decompose_reduction(block, k)
        s.transform_layout(s.get_block("B_pad"), ("write", 0), lambda j, k: [j // 16, k, j % 16])

    scheduled(MATMUL, steps)


def test_queries() -> None:
    schedule = Schedule(parse_mir(MATMUL))
    c, d = schedule.get_block("C"), schedule.get_block("D")
    assert schedule.get_producers(d) == [c] and schedule.get_consumers(c) == [d]
    assert schedule.get_child_blocks(schedule.get_block("root")) == [c, d]
    assert schedule.get_output_blocks(schedule.get_block("root")) == [d]
    assert "has no block 'X'" in refused(MATMUL, lambda s: s.get_block("X"))


def test_handles_outlast_edits_and_say_when_they_are_gone() -> None:
    module = parse_mir(CHAIN)
    schedule = Schedule(module)
    block = schedule.get_block("B")
    i, j = schedule.get_loops(block)
    schedule.split(j, [None, 5])
    assert schedule.get_loops(block)[0] is i
    with pytest.raises(ScheduleError, match="loop 'j' was split; use the loops that split returned"):
        schedule.parallel(j)


def test_trace_is_data() -> None:
    schedule = Schedule(parse_mir(CHAIN))
    block = schedule.get_block("B")
    schedule.split(schedule.get_loops(block)[1], factors=[None, 5])
    assert [step.name for step in schedule.trace] == ["get_block", "get_loops", "split"]
    assert schedule.trace[-1].arguments["factors"] == [None, 5] and len(schedule.trace[-1].results) == 2


def test_wrong_arguments() -> None:
    assert "split needs the argument 'factors', a list of numbers or sampled values or None" in refused(
        CHAIN,
        lambda s: s.split(s.get_loops(s.get_block("B"))[0]),  # type: ignore[call-arg]
    )
    with pytest.raises(AttributeError, match="there is no schedule primitive 'spit'"):
        Schedule(parse_mir(CHAIN)).spit()


@pytest.mark.parametrize("name", names())
def test_every_primitive_is_documented(name: str) -> None:
    assert len(Schedule.help(name).splitlines()) > 2
