"""transform_layout: padding, who writes it and what it holds; maps with keyword-only indices and constants; refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mirstack.dialects.tir import PrimFuncOp
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.fuzz.schedules.programs import CHAIN, MATMUL, STENCIL
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.schedule import Schedule
from test_primitives import refused, scheduled
from test_trace import check_replays

FILL = """
@T.prim_func
def main(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
    for i in range(14):
        with T.block("B"):
            vi = T.axis.spatial(14, i)
            B[vi] = A[vi] * 2 + 100
"""

ROWS = """
@T.prim_func
def main(A: T.Buffer((10, 8), "int32"), B: T.Buffer((10,), "int32")):
    for i, k in T.grid(10, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
"""


def laid_out(text: str, index_map: Any, pad_value: Any, *before: Callable[[Schedule], object]) -> tuple[str, Any, Any]:
    """The program after a new layout of its output B; what B held before, and what it holds in the new layout."""
    module = parse_mir(text)
    old = outputs(module)
    schedule = Schedule(module)
    for step in before:
        step(schedule)
    schedule.transform_layout(schedule.get_block("B"), "B", index_map, pad_value=pad_value)
    module.verify()
    printed = print_mir(module)
    assert print_mir(parse_mir(printed)) == printed
    check_replays(text, schedule)
    return printed, old, outputs(module)


def outputs(module: Any) -> Any:
    (function,) = [op for op in module.body.block.ops if isinstance(op, PrimFuncOp)]
    values: dict[str, Any] = {}
    for name, param in zip(function.param_names.data, function.params, strict=True):
        shape = param.type.static_shape  # pyright: ignore[reportAttributeAccessIssue]
        size = int(np.prod(shape))
        values[name.data] = np.arange(size, dtype=np.int32).reshape(shape) * (name.data != "B") - (name.data == "B")
    interpret_prim_func(function, values, module)
    return values["B"]


@pytest.mark.parametrize(
    ("index_map", "shape", "where"),
    [
        (lambda i: [i // 4, i % 4], (4, 4), "v_axis0 == 3 and 2 <= v_axis1"),
        (
            lambda i: [(i + 1) // 8, (i + 1) % 8],
            (2, 8),
            "v_axis0 == 0 and v_axis1 < 1 or v_axis0 == 1 and 7 <= v_axis1",
        ),
        (lambda i: [i // 8, (i // 4) % 2, i % 4], (2, 2, 4), "v_axis0 == 1 and 6 <= v_axis1 * 4 + v_axis2"),
        (lambda i: [0, i // 4, i % 4], (1, 4, 4), "v_axis1 == 3 and 2 <= v_axis2"),
        (lambda i: [(i + 3) % 20], (20,), "v_axis0 < 3 or 17 <= v_axis0"),
        (lambda i: [i % 4, i // 4], (4, 4), "v_axis1 == 3 and 2 <= v_axis0"),
    ],
)
def test_the_block_writes_the_padding_too(index_map: Any, shape: Any, where: str) -> None:
    text, old, new = laid_out(FILL, index_map, -7)
    assert new.shape == shape and f"T.if_then_else({where}, -7, " in text
    assert "buffer_B_padding" not in text
    check(old, new, index_map, -7)


def check(old: Any, new: Any, index_map: Any, padding: Any) -> None:
    """Every element is where the map says, all others hold the padding."""
    expected = np.full(new.shape, padding)
    for place in np.ndindex(old.shape):
        expected[tuple(index_map(*place))] = old[place]
    np.testing.assert_array_equal(new, expected)


def test_reductions() -> None:
    text, old, new = laid_out(ROWS, lambda i: [i // 4, i % 4], 9)
    assert "for axis0, axis1, k in T.grid(3, 4, 8):" in text
    assert (
        "T.if_then_else(v_axis0 == 2 and 2 <= v_axis1, 9, B[v_axis0, v_axis1] + A[v_axis0 * 4 + v_axis1, vk])" in text
    )
    check(old, new, lambda i: [i // 4, i % 4], 9)


def test_two_dimensions() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((10, 7), "int32"), B: T.Buffer((10, 7), "int32")):
    for i, j in T.grid(10, 7):
        with T.block("B"):
            vj, vi = T.axis.remap("SS", [j, i])
            B[vi, vj] = A[vi, vj] + 1
"""
    for index_map in (
        lambda i, j: [i // 4, j // 4, i % 4, j % 4],
        lambda i, j: [(i * 7 + j) // 16, (i * 7 + j) % 16],
        lambda i, j: [j, i // 8, i % 8],
    ):
        _, old, new = laid_out(text, index_map, 5)
        check(old, new, index_map, 5)


def test_functions_of_the_new_indices() -> None:
    text, old, new = laid_out(FILL, lambda i: [i // 4, i % 4], lambda i, j: i * 10 + j)
    assert "v_axis0 * 10 + v_axis1" in text
    assert new[3, 2] == 32 and new[3, 3] == 33 and new[3, 1] == old[13]
    text, _, new = laid_out(FILL, lambda i: [i // 4, i % 4], lambda *indices: (3,))
    assert list(new[3, 2:]) == [3, 3]


@pytest.mark.parametrize(
    "before",
    [
        lambda s: s.split(s.get_loops("B")[0], [None, 7]),
        lambda s: s.parallel(s.get_loops("B")[0]),
        lambda s: s.split(s.get_loops("B")[0], [None, 4]),
        lambda s: s.annotate(s.get_loops("B")[0], "pragma", 1),
    ],
)
def test_a_block_behind_the_writer(before: Any) -> None:
    text, old, new = laid_out(FILL, lambda i: [i // 4, i % 4], 3, before)
    assert 'with T.block("buffer_B_padding"):' in text and "T.where(axis0 == 3 and 2 <= axis1)" in text
    assert "for axis0, axis1 in T.grid(4, 4):" in text and "B[v_axis0, v_axis1] = 3" in text
    check(old, new, lambda i: [i // 4, i % 4], 3)


def test_several_writers() -> None:
    module = parse_mir(ROWS)
    old = outputs(module)
    schedule = Schedule(module)
    schedule.decompose_reduction(schedule.get_block("B"), schedule.get_loops("B")[0])
    schedule.transform_layout("B_update", "B", lambda i: [i // 4, i % 4], pad_value=6)
    text = print_mir(module)
    assert text.index('T.block("B_update")') < text.index('T.block("buffer_B_padding")')
    check(old, outputs(module), lambda i: [i // 4, i % 4], 6)


def test_what_is_only_read_is_assumed() -> None:
    module = parse_mir(FILL)
    schedule = Schedule(module)
    schedule.transform_layout("B", "A", lambda i: [i // 4, i % 4], pad_value=42)
    module.verify()
    text = print_mir(module)
    assert print_mir(parse_mir(text)) == text
    assert 'with T.block("buffer_A_assumption"):' in text and "T.reads(A[v_axis0, v_axis1])" in text
    assert "            T.assume(not (v_axis0 == 3 and 2 <= v_axis1) or A[v_axis0, v_axis1] == 42)\n" in text
    assert text.index("buffer_A_assumption") < text.index('T.block("B")')
    assert list(outputs(module)) == [100 + 2 * k for k in range(14)]


def test_handles() -> None:
    def steps(s: Schedule) -> None:
        block, loops = s.get_block("B"), s.get_loops("B")
        s.transform_layout(block, "B", lambda i: [i // 16, i % 16], pad_value=0.0)
        assert s.resolve(s.get_loops(block)[1]).var_name.data == "axis1"
        with pytest.raises(Exception, match="transform_layout gave block 'B' other loops"):
            s.resolve(loops[0])

    text = scheduled(STENCIL, steps)
    assert (
        "B = T.alloc_buffer((3, 16))" in text
        and "T.if_then_else(v_axis0 == 2 and 2 <= v_axis1, T.float32(0), A[" in text
    )


def test_no_padding_needs_no_value() -> None:
    text = scheduled(CHAIN, lambda s: s.transform_layout("B", "B", lambda i, j: [i, j // 10, j % 10], pad_value=1.0))
    assert "if_then_else" not in text


def test_names_of_the_last_indices() -> None:
    text = scheduled(MATMUL, lambda s: s.transform_layout("C", "C", lambda *indices, k: [*indices, k // 4, k % 4]))
    assert "C = T.alloc_buffer((24, 5, 4))" in text
    sch = Schedule(parse_mir(MATMUL))
    sch.transform_layout("C", "C", lambda i, *, k: [k, i])
    check_replays(MATMUL, sch)
    sch = Schedule(parse_mir(MATMUL))
    sch.transform_layout("C", "C", lambda *indices, k: [k, *indices])
    check_replays(MATMUL, sch)
    assert "lambda i0, k: (k, i0,)" in str(sch.trace)


def lay(index_map: Any, **kwargs: Any) -> Any:
    return lambda s: s.transform_layout("B", "B", index_map, **kwargs)


SPLIT: Any = lambda i: [i // 4, i % 4]  # noqa: E731


@pytest.mark.parametrize(
    ("text", "steps", "message"),
    [
        (
            STENCIL,
            lay(lambda i: [i // 16, i % 16]),
            "transform_layout: the new layout of 'B' has 48 elements for 34: it is padded where axis0 == 2 and axis1 >= 2\nnote: say by pad_value what padding holds, or pad the buffer to a multiple first (pad_einsum)",
        ),
        (
            FILL,
            lay(lambda i: [(i + 1) // 8, (i + 1) % 8]),
            "it is padded where axis0 == 0 and axis1 < 1 or axis0 == 1 and axis1 >= 7",
        ),
        (
            FILL,
            lay(SPLIT, pad_value=1.5),
            "transform_layout: pad_value 1.5 is not of dtype int32, which the elements of 'B' are",
        ),
        (FILL, lay(SPLIT, pad_value=1 << 31), "transform_layout: pad_value 2147483648 is not of dtype int32"),
        (
            FILL,
            lay(SPLIT, pad_value=lambda i: i),
            "transform_layout: pad_value takes 1 indices, but the new layout of 'B' has 2 dimensions",
        ),
        (
            STENCIL,
            lay(SPLIT, pad_value=lambda i, j: i + j),
            "transform_layout: pad_value i + j is of the dtype of indices, int32, but 'B' is of float32",
        ),
        (FILL, lay(SPLIT, pad_value=lambda i, j: "x"), "transform_layout: pad_value 'x' is not of dtype int32"),
        (
            FILL,
            lay(lambda i: [i // 4, i]),
            "transform_layout: the layout of 'B' cannot be shown to keep all elements apart: ",
        ),
        (FILL, lay(lambda i: [i * 2]), "keep all elements apart: it leaves gaps between elements"),
        (FILL, lay(lambda i: [i // 2]), "keep all elements apart: "),
        (
            FILL,
            lay(lambda i, *, j, k: [i]),
            "transform_layout: the map takes 3 indices, but the buffer has 1 dimension",
        ),
        (
            FILL,
            lay(lambda i: [i - 3]),
            "transform_layout: index 0 of the new layout runs from -3 to 10\nnote: every new index must run from 0",
        ),
    ],
)
def test_refused(text: str, steps: Any, message: str) -> None:
    assert message in refused(text, steps)


def test_other_values_in_the_padding() -> None:
    from mirstack.dialects.arith import symbol

    other = symbol("n")
    message = refused(FILL, lay(SPLIT, pad_value=lambda i, j: i + other))
    assert "transform_layout: pad_value n + i uses other values than the new indices" in message


def test_symbolic_dimensions_beside_padding() -> None:
    text = """
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 14), "int32")
    B = T.match_buffer(b, (n, 14), "int32")
    C = T.alloc_buffer((n, 14), "int32")
    for i, j in T.grid(n, 14):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj]
    for i, j in T.grid(n, 14):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = C[vi, vj]
"""
    for value in (1, None):
        message = refused(
            text, lambda s, v=value: s.transform_layout("B", "C", lambda i, j: [i, j // 4, j % 4], pad_value=v)
        )
        assert "transform_layout: 'C' is padded, and has dimensions of symbolic extent" in message


def test_buffers() -> None:
    strided = STENCIL.replace("T.alloc_buffer((34,))", 'T.alloc_buffer((34,), "float32", strides=[2])')
    message = refused(strided, lay(lambda i: [i // 2, i % 2]))
    assert "transform_layout: buffer 'B' has strides, or lies in another buffer's memory" in message
    matched = STENCIL.replace(
        "            C[vi] = B[vi] + B[vi + 1] + B[vi + 2]",
        "            M = T.match_buffer(B[vi:vi + 3], (3,))\n            C[vi] = M[0] + M[1] + M[2]",
    )
    message = refused(matched, lay(lambda i: [i // 2, i % 2]))
    assert "transform_layout: 'B' is used otherwise than by its elements" in message


def test_symbolic_dimensions_are_kept() -> None:
    text = """
@T.prim_func
def main(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 4), "int32")
    B = T.alloc_buffer((n, 4), "int32")
    for i, j in T.grid(n, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
"""
    message = refused(text, lay(lambda i, j: [i // 2, j, i % 2]))
    assert "transform_layout: buffer 'B' has a symbolic shape" in message
    assert "note: a dimension of symbolic extent must be one of the new indices by itself, in the old order" in message


def test_padding_behind_a_block_around_the_writer() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((3,), "int32")):
    B = T.alloc_buffer((3,), "int32")
    for i in range(3):
        with T.block("B"):
            vi = T.axis.spatial(3, i)
            B[vi] = vi + 1
    for i in range(3):
        with T.block("A"):
            vi = T.axis.spatial(3, i)
            A[vi] = B[vi]
"""

    def steps(s: Schedule) -> None:
        s.transform_layout(s.blockize(s.get_loops("B")[0]), ("write", 0), lambda i: [i // 2, i % 2], pad_value=0)

    assert "T.writes(B[0:2, 0:2])" in scheduled(text, steps)


def test_blocks_that_declare_what_they_do_not_touch() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    B = T.alloc_buffer((4,), "int32")
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi]
    for i in range(4):
        with T.block("D"):
            vi = T.axis.spatial(4, i)
            T.reads(B[vi])
            T.writes(C[vi])
            C[vi] = 1
"""
    assert "T.reads()" in scheduled(text, lambda s: s.transform_layout("B", "B", lambda i: [i // 2, i % 2]))
