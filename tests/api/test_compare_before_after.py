"""`testing.CompareBeforeAfter` compares what a pass makes of a program with what is expected."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mirstack import testing, tir

TESTS = """
import mirstack
from mirstack import testing, tir
from mirstack.script import ir as I, tir as T

class Base(testing.CompareBeforeAfter):
    knowns = False
    size = testing.parameter(4, 8)
    def transform(self):
        def inner(mod):
            config = {"tir.Simplify": {"propagate_knowns_to_prove_conditional": self.knowns,
                                       "propagate_knowns_to_simplify_expressions": self.knowns,
                                       "convert_boolean_to_and_of_ors": True}}
            with mirstack.transform.PassContext(config=config):
                return tir.transform.Simplify()(mod)
        return inner

class TestFunctions(Base):
    def before(A: T.Buffer(1, "int32")):
        A[0] = 1 + 2
    def expected(A: T.Buffer(1, "int32")):
        A[0] = 3

class TestMethods(Base):
    def before(self, size):
        @T.prim_func
        def func(A: T.Buffer(size, "int32")):
            A[0] = 1
        return func
    expected = before

class TestModules(Base):
    class before:
        def main(A: T.Buffer(1, "int32")):
            A[0] = 1 + 2
        @T.prim_func
        def other(A: T.Buffer(1, "int32")):
            A[0] = 2 + 2
    @I.ir_module
    class expected:
        @T.prim_func
        def main(A: T.Buffer(1, "int32")):
            A[0] = 3
        @T.prim_func
        def other(A: T.Buffer(1, "int32")):
            A[0] = 4

class TestWrong(Base):
    def before(A: T.Buffer(1, "int32")):
        A[0] = 1 + 2
    def expected(A: T.Buffer(1, "int32")):
        A[0] = 4

class TestRaises(testing.CompareBeforeAfter):
    def transform(self):
        def inner(mod):
            raise ValueError("no")
        return inner
    def before(A: T.Buffer(1, "int32")):
        A[0] = 1
    expected = ValueError

class TestAssumed(Base):
    knowns = True
    def before(A: T.Buffer(1, "int32"), n: T.int32):
        T.evaluate(T.assume(n == 0))
        if n == 0:
            A[0] = 42
    def expected(A: T.Buffer(1, "int32"), n: T.int32):
        T.evaluate(T.assume(n == 0))
        A[0] = 42

class TestStored(Base):
    knowns = True
    def before(A: T.Buffer(1, "int32"), B: T.Buffer(1, "int32")):
        A[0] = 0
        if A[0] == 0:
            A[0] = 42
        B[0] = A[0]
        A[0] = 7
        B[0] = A[0]
    def expected(A: T.Buffer(1, "int32"), B: T.Buffer(1, "int32")):
        A[0] = 0
        A[0] = 42
        B[0] = A[0]
        A[0] = 7
        B[0] = 7

class TestClauses(Base):
    def before(A: T.Buffer(4, "bool")):
        T.evaluate((A[0] or A[1]) and (A[1] or (A[0] and A[2] and A[3])))
    def expected(A: T.Buffer(4, "bool")):
        T.evaluate((A[0] or A[1]) and (A[1] or A[2]) and (A[1] or A[3]))
"""


def test_passes_and_failures(tmp_path: Path) -> None:
    file = tmp_path / "test_of_a_user.py"
    file.write_text(TESTS)
    command = [sys.executable, "-m", "pytest", str(file), "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run([*command, "--rootdir", str(tmp_path)], capture_output=True, text=True, cwd=tmp_path)
    assert "1 failed, 8 passed" in done.stdout, done.stdout + done.stderr
    assert "FAILED test_of_a_user.py::TestWrong::test_compare" in done.stdout


def test_refusals() -> None:
    with pytest.raises(TypeError, match="Twice has both before and Before: one is enough"):
        type("Twice", (testing.CompareBeforeAfter,), {"before": None, "Before": None})
    with pytest.raises(TypeError, match="transform is a pass, or a method that returns one, not 3"):
        type("NoPass", (testing.CompareBeforeAfter,), {"transform": 3})
    with pytest.raises(AttributeError, match="has no attribute 'CompareBeforAfter'; did you mean 'CompareBeforeAfter'"):
        _ = testing.CompareBeforAfter  # type: ignore[attr-defined]


def test_equal_expressions() -> None:
    x = tir.Var("x", "int32")
    testing.assert_prim_expr_equal(x * 2, x + x)
    with pytest.raises(AssertionError, match=r"^x and x \+ 1 are not proven to be equal$"):
        testing.assert_prim_expr_equal(x, x + 1)
