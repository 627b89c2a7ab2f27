"""lower-lane-reduction: sums and extrema of rows of any length, masked or not, NaN included, as numpy has them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import tir
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.registry import PASSES
from mirstack.passes.tir.rewriting import prim_funcs
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

PROGRAM = """# from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((5, {length}), "{dtype}"), B: T.Buffer((5,), "{dtype}")):
    T.func_attr({{"tir.noalias": T.bool(True)}})
    for i, k in T.grid(5, {length}):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.{dtype}({init})
            B[vi] = {update}
"""
UPDATES: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "sum": ("B[vi] + A[vi, vk]", "0", lambda x: x.sum(1, dtype=x.dtype)),
    "max": ("T.max(B[vi], A[vi, vk])", "-1000000", lambda x: x.max(1)),
    "min": ("T.min(A[vi, vk], B[vi])", "1000000", lambda x: x.min(1)),
    "prod": ("B[vi] * A[vi, vk]", "1", lambda x: x.prod(1, dtype=x.dtype)),
}


def scheduled(length: int, update: str, dtype: str = "float32", lanes: int = 16, masks: int = 1) -> Any:
    """The reduction of 5 rows, in lanes."""
    text, init, _ = UPDATES[update]
    program = PROGRAM.format(length=length, dtype=dtype, init=init, update=text)
    sch = tir.Schedule(mirstack.parse(program))
    block = sch.get_block("B")
    loop = sch.get_loops(block)[-1]
    for key, value in (("reduction_lanes", lanes), ("reduction_vectors", 4), ("reduction_masks", masks)):
        sch.annotate(loop, key, value)
    sch.decompose_reduction(block, loop)
    return sch.mod


def values(length: int, dtype: str) -> Any:
    """5 rows whose products stay small."""
    rng = np.random.default_rng(length)
    small = rng.uniform(0.9, 1.1, (5, length)) if dtype.startswith("float") else rng.integers(-9, 9, (5, length))
    return small.astype(dtype)


@pytest.mark.parametrize("length", [1, 2, 7, 16, 17, 31, 33, 64, 65, 130])
@pytest.mark.parametrize("masks", [0, 1])
def test_rows_of_any_length(length: int, masks: int) -> None:
    for update, (_, _, expected) in UPDATES.items():
        for dtype in ("float32", "int32") if length in (7, 33, 130) else ("float32",):
            x = values(length, dtype)
            result = np.zeros(5, dtype)
            mirstack.compile(scheduled(length, update, dtype, masks=masks))(x, result)
            np.testing.assert_allclose(result, expected(x), rtol=1e-4)


SIDE = """# from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((5, {length}), "float32"), B: T.Buffer((5,), "float32"), S: T.Buffer((5, {length}), "float32")):
    T.func_attr({{"tir.noalias": T.bool(True)}})
    for i in range(5):
        B[i] = T.float32(0)
        for k in T.serial({length}, annotations={{"reduction_lanes": 16, "reduction_masks": {masks}, "reduction_vectors": 2}}):
            with T.block("S"):
                vi, vk = T.axis.remap("SS", [i, k])
                S[vi, {place}] = A[vi, vk] * A[vi, vk]
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                B[vi] = B[vi] + S[vi, {read}]
"""


def side_stores(length: int, masks: int = 1, place: str = "vk", read: str = "vk") -> Any:
    """Squares that are stored where they are added up."""
    return mirstack.parse(SIDE.format(length=length, masks=masks, place=place, read=read))


@pytest.mark.parametrize("length", [5, 16, 31, 64, 75])
@pytest.mark.parametrize("masks", [0, 1])
def test_terms_are_stored_as_well(length: int, masks: int) -> None:
    a = values(length, "float32")
    sums, squares = np.zeros(5, "f4"), np.full((5, length), -1, "f4")
    mirstack.compile(side_stores(length, masks))(a, sums, squares)
    np.testing.assert_array_equal(squares, a * a)
    np.testing.assert_allclose(sums, (a * a).sum(1), rtol=1e-6)


@pytest.mark.parametrize(("place", "read"), [("0", "0"), ("vk // 2", "vk // 2"), ("vk", "T.max(vk - 1, 0)")])
def test_stores_that_other_turns_read_stay_in_order(place: str, read: str) -> None:
    a = values(40, "float32")
    sums, squares = np.zeros(5, "f4"), np.zeros((5, 40), "f4")
    mirstack.compile(side_stores(40, 1, place, read))(a, sums, squares)
    stored = np.zeros((5, 40))
    wanted = np.zeros(5)
    for k in range(40):
        at, of = (k, max(k - 1, 0)) if place == "vk" else (0, 0) if place == "0" else (k // 2, k // 2)
        stored[:, at] = a[:, k].astype(float) ** 2
        wanted += stored[:, of]
    np.testing.assert_allclose(sums, wanted, rtol=1e-5)


@pytest.mark.parametrize(("cpu", "lanes", "masks"), [("haswell", 8, 1), ("x86-64", 4, 0)])
def test_other_targets(cpu: str, lanes: int, masks: int) -> None:
    for length in (5, 37, 100):
        x, result = values(length, "float32"), np.zeros(5, "float32")
        mirstack.compile(scheduled(length, "sum", lanes=lanes, masks=masks), cpu=cpu)(x, result)
        np.testing.assert_allclose(result, x.sum(1), rtol=1e-4)


@pytest.mark.parametrize("length", [7, 33])
def test_a_nan_anywhere_is_the_extremum(length: int) -> None:
    for update in ("max", "min"):
        run = mirstack.compile(scheduled(length, update))
        for place in range(length):
            x, result = values(length, "float32"), np.zeros(5, "float32")
            x[2, place] = np.nan
            run(x, result)
            assert np.isnan(result[2]), place
            assert not np.isnan(result[[0, 1, 3, 4]]).any()


def test_what_was_there_counts() -> None:
    """The init is the value before the loop, whatever it is."""
    x, result = np.full((5, 40), -2.0e6, "float32"), np.zeros(5, "float32")
    mirstack.compile(scheduled(40, "max"))(x, result)
    assert (result == -1e6).all()


def test_the_interpreter_runs_the_result() -> None:
    module = parse_mir(str(scheduled(37, "sum").script()))
    known = {entry.name: entry for entry in PASSES}
    for name in ("convert-blocks-to-opaque", "lower-opaque-block", "lower-lane-reduction", "vectorize-loop"):
        known[name].load()().apply(Context(), module)
    assert "T.vector_reduce_add(" in print_mir(module)
    x, result = values(37, "float32"), np.zeros(5, "float32")
    interpret_prim_func(prim_funcs(module)[0], {"A": x, "B": result}, module)
    np.testing.assert_allclose(result, x.sum(1), rtol=1e-5)


@pytest.mark.parametrize("operator", ["argmax", "argmin"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"), [((5, 100), 1), ((9, 16), 1), ((3, 7), 1), ((33, 50), 0), ((4, 20, 19), 1), ((3, 157), 1)]
)
def test_choices(operator: str, last: bool, shape: tuple[int, ...], axis: int) -> None:
    """The first of equal elements, or the last, wherever lanes put them."""
    text = f"""#[version = "0.0.5"]
def @main(%x: Tensor[({", ".join(map(str, shape))}), float32]) {{
  {operator}(%x, axis=[{axis}], select_last_index={last})
}}"""
    x = np.random.default_rng(0).integers(-4, 4, shape).astype("float32")
    choose = getattr(np, operator)
    expected = shape[axis] - 1 - choose(np.flip(x, axis), axis) if last else choose(x, axis)
    for cpu in (None, "haswell", "x86-64"):
        result = mirstack.compile(mirstack.parse(text), threads=1, cpu=cpu)(x)
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("shape", [(2, 70), (2, 5), (70, 20)])
def test_nothing_is_chosen_but_an_element(shape: tuple[int, ...]) -> None:
    """Where all elements are as far as elements can be, the first one is chosen."""
    x = np.full(shape, -np.inf, "float32")
    axis = int(shape == (2, 70))
    text = f"""#[version = "0.0.5"]
def @main(%x: Tensor[({shape[0]}, {shape[1]}), float32]) {{ (argmax(%x, axis=[{axis}]), argmin(negative(%x), axis=[{axis}])) }}"""
    for found in mirstack.compile(mirstack.parse(text), threads=1)(x):
        assert not np.asarray(found).any()


@pytest.mark.parametrize("operator", ["argmax", "argmin"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("shape", [(6, 37), (3, 3, 130)])
def test_nan_is_chosen_wherever_it_is(operator: str, last: bool, shape: tuple[int, ...]) -> None:
    """The first NaN, or the last, beats every number, in whichever lane and turn it is, infinities before and behind it."""
    axes = list(range(1, len(shape)))
    text = f"""#[version = "0.0.5"]
def @main(%x: Tensor[({", ".join(map(str, shape))}), float32]) {{
  {operator}(%x, axis={axes}, select_last_index={last})
}}"""
    rng = np.random.default_rng(sum(shape))
    runs = [mirstack.compile(mirstack.parse(text), threads=1, cpu=cpu) for cpu in (None, "haswell", "x86-64")]
    choose = getattr(np, operator)
    for count in (0, 1, 2, 5, 20):
        x = rng.integers(-2, 3, shape).astype("float32")
        x[x == 2] = np.inf
        x[x == -2] = -np.inf
        rows = x.reshape(shape[0], -1)
        for row in rows:
            row[rng.choice(len(row), count, replace=False)] = np.nan
        expected = rows.shape[1] - 1 - choose(rows[:, ::-1], 1) if last else choose(rows, 1)
        for run in runs:
            np.testing.assert_array_equal(run(x), expected)


@pytest.mark.parametrize(
    ("attributes", "shape", "kept"),
    [
        ("axis=[1]", "2, 200", ">= p0[i0, v_2] or v_3 != v_3"),
        ("axis=[0, 1]", "20, 200", ">= p0[v_k0, v_k1] or v_3 != v_3"),
        ("axis=[1], select_last_index=True", "2, 200", "v_4 == v_4 and not v_3 <= v_4"),
    ],
)
def test_ties_are_decided_by_the_order_of_turns(attributes: str, shape: str, kept: str) -> None:
    """In a lane what was chosen comes from an earlier turn: two compares are left of argmax's condition. All lanes have one place."""
    seen: list[str] = []

    def look(step: ModulePass, module: ModuleOp) -> None:
        if step.name == "lower-lane-reduction":
            seen.append(print_mir(module))

    text = f"""#[version = "0.0.5"]
def @main(%x: Tensor[({shape}), float32]) {{ argmax(%x, {attributes}) }}"""
    mirstack.compile(mirstack.parse(text), threads=1, cpu="haswell", cache=False, observers=(look,))
    kernel = next(t for t in seen if "argmax_red_temp_v1_lanes" in t)
    turn = kernel[kernel.index("* 32\n") :].split("for vector")[1]
    condition, chosen = re.findall(r": T.bool = (.*)", turn), re.findall(r"lanes\[v_1\] = T.Select\((.*)\)", turn)
    assert len(condition) == 1
    assert condition[0].endswith(kept)
    assert chosen[0].endswith(", v")
