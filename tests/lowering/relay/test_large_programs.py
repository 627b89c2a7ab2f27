"""Programs so large that LLVM is kept from optimizing what is around the kernels."""

from __future__ import annotations

import re
from pathlib import Path

import mirstack
import numpy as np
import pytest
from mirstack.benchmarks.timing import cpu_seconds, growth
from mirstack.lowering.driver.build import llvm_text
from mirstack.lowering.pipeline import Options, graph_passes
from mirstack.lowering.relay.functions import lower_relay_to_llvm
from mirstack.lowering.relay.functions.lower_relay_to_llvm import MANY_ADDRESSES, MANY_FUNCTIONS
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

T = "Tensor[(4), float32]"


def sums(parameters: int) -> str:
    """A function that adds its parameters up."""
    lines = "".join(f"  %{k} = nn.softmax(add(%{k - 1}, %p{k}));\n" for k in range(1, parameters))
    declared = ", ".join(f"%p{k}: {T}" for k in range(parameters))
    return f"def @main({declared}) {{\n  %0 = exp(%p0);\n{lines}  %{parameters - 1}\n}}\n"


def functions(count: int) -> str:
    """Functions of which each calls the next one."""
    made = [f"def @f{k}(%x: {T}) -> {T} {{ add(@f{k + 1}(%x), {k}f) }}\n" for k in range(count - 1)]
    return f"{''.join(made)}def @f{count - 1}(%x: {T}) -> {T} {{ %x }}\ndef @main(%x: {T}) {{ @f0(%x) }}\n"


def attributes(program: str | ModuleOp, name: str) -> list[str]:
    """The attributes of a function, in the LLVM IR of a program."""
    text = llvm_text(mirstack.parse(program) if isinstance(program, str) else program)
    found = re.search(rf"^define .*@{name}\(.*\)(.*) {{$", text, re.MULTILINE)
    assert found is not None
    return found[1].split()


@pytest.mark.parametrize("name", ["main", "mirstack_entry"])
def test_functions_of_many_parameters_are_taken_as_they_are(name: str) -> None:
    assert {"noinline", "optnone"} <= set(attributes(sums(MANY_ADDRESSES), name))
    assert "optnone" not in attributes(sums(8), name)


def test_many_functions_are_not_put_into_one_another() -> None:
    assert "noinline" in attributes(functions(MANY_FUNCTIONS), "f1")
    assert "noinline" not in attributes(functions(4), "f1")


def test_they_compute_the_same() -> None:
    values = [np.arange(4, dtype="float32") * k for k in range(MANY_ADDRESSES)]
    wanted = mirstack.compile(mirstack.parse(sums(len(values))), "interp")(*values)
    found = mirstack.compile(mirstack.parse(sums(len(values))), cache=False)(*values)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    many = mirstack.compile(mirstack.parse(functions(MANY_FUNCTIONS)), cache=False)
    np.testing.assert_array_equal(many(values[1]), values[1] + sum(range(MANY_FUNCTIONS - 1)))


OPEN = """def @main(%x: Tensor[(?, 4), float32], %y: Tensor[(?, 4), float32]) {
  %0 = concatenate((nn.softmax(%x), %y), axis=0);
  if (less(sum(%0), 3f)) { nn.softmax(add(%0, 1f)) } else { tanh(%0) }
}
"""


@pytest.mark.parametrize(("limit", "most"), [("MANY_OPS", 8), ("MANY_CALLS", 2)])
def test_long_functions_are_taken_as_they_are(limit: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of known sizes and of others, with branches."""
    assert "optnone" not in attributes(OPEN, "main")
    monkeypatch.setattr(lower_relay_to_llvm, limit, most)
    assert {"noinline", "optnone"} <= set(attributes(OPEN, "main"))
    run = mirstack.compile(mirstack.parse(OPEN), cache=False)
    interpreted = mirstack.compile(mirstack.parse(OPEN), "interp")
    for rows in (1, 5):
        x, y = np.ones((rows, 4), "float32"), np.zeros((2, 4), "float32")
        np.testing.assert_allclose(run(x, y), interpreted(x, y), rtol=1e-5)


def test_what_prepares_constants_is_taken_as_it_is(tmp_path: Path) -> None:
    """It runs once."""
    np.savez(tmp_path / "w.npz", w=np.ones((64, 16), "float32"))
    text = """#[version = "0.0.5"]
#[constants = "w.npz"]
def @main(%x: Tensor[(8, 16), float32]) { nn.dense(%x, meta[relay.Constant]["w"], units=64) }
"""
    for name, taken in ("mirstack_prepare_body", True), ("main", False):
        module = mirstack.parse(text, directory=tmp_path)
        assert ({"noinline", "optnone"} <= set(attributes(module, name))) == taken


def test_kernels_that_are_all_different_take_a_linear_time() -> None:
    """The pieces of a concatenation, each by a kernel of its own, through all passes on the graph."""

    def seconds(count: int) -> float:
        lines = "".join(f"  %{k} = nn.relu(add(%x, {k}f));\n" for k in range(count))
        pieces = ", ".join(f"%{k}" for k in range(count))
        module = mirstack.parse(f"def @main(%x: {T}) {{\n{lines}  concatenate(({pieces}), axis=0)\n}}\n")

        def run() -> None:
            for step in graph_passes(Options()):
                step.apply(Context(), module)

        return cpu_seconds(run)

    assert growth(seconds, 75, 600, below=20) < 20
