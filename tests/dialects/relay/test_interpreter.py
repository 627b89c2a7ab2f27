"""The interpreter of Relay: control flow, functions as values, data types, references, deep programs, errors."""

from __future__ import annotations

import numpy as np
import pytest
from mirstack.dialects.relay.interpreter import AdtValue, Closure, flatten, interpret
from mirstack.parser import parse_mir
from mirstack.support.diagnostics import MirError

LIST = "type List[A] { Cons(A, List[A]), Nil, }\n"


def run(text: str, *args: object, entry: str = "main") -> object:
    arrays = [np.asarray(a, np.int32) if isinstance(a, int) else a for a in args]
    return interpret(parse_mir(text), entry, arrays)  # type: ignore[arg-type]


def number(text: str, *args: object) -> int:
    result = run(text, *args)
    assert isinstance(result, np.ndarray) and result.shape == () and result.dtype == np.int32
    return int(result)


def test_tuples_and_let() -> None:
    text = "def @main(%x: int32) { let %t = (%x, add(%x, 1), (%x,)); (%t.1, %t.0, %t.2) }"
    result = run(text, 4)
    assert result == (5, 4, (4,))
    assert [int(a) for a in flatten(result)] == [5, 4, 4]  # type: ignore[arg-type]


def test_if_evaluates_one_branch() -> None:
    text = "def @main(%c: bool, %x: int32) { if (%c) { add(%x, 1) } else { @main(True, %x) } }"
    assert number(text, np.array(True), 3) == 4
    assert number(text, np.array(False), 3) == 4


def test_local_recursion() -> None:
    text = """def @main(%n: int32) {
      let %f = fn (%x: int32) -> int32 { if (equal(%x, 0)) { 0 } else { add(%x, %f(subtract(%x, 1))) } };
      %f(%n)
    }"""
    assert number(text, 10) == 55
    assert number(text, 20_000) == 200_010_000


def test_tail_calls_take_no_space() -> None:
    text = """def @loop(%n: int32, %sum: int32) -> int32 {
      if (equal(%n, 0)) { %sum } else { let %r = @loop(subtract(%n, 1), add(%sum, %n)); %r }
    }
    def @main(%n: int32) { @loop(%n, 0) }"""
    assert number(text, 20_000) == 20_000 * 20_001 // 2


def test_recursion_without_end() -> None:
    text = "def @main(%n: int32) -> int32 { add(%n, @main(%n)) }"
    with pytest.raises(MirError, match="calls nest deeper than 200000") as error:
        run(text, 1)
    assert "a tail call" in str(error.value) and "1:41" in str(error.value)


def test_closures_see_what_is_around_them() -> None:
    text = """def @main(%x: int32) {
      let %adder = fn (%y: int32) { fn (%z: int32) { add(add(%x, %y), %z) } };
      let %one = %adder(1);
      let %ten = %adder(10);
      (%one(100), %ten(100))
    }"""
    assert run(text, 1000) == (1101, 1110)


def test_functions_as_values() -> None:
    text = """def @twice[A](%f: fn (A) -> A, %x: A) -> A { %f(%f(%x)) }
    def @inc(%x: int32) -> int32 { add(%x, 1) }
    def @main(%x: int32) -> int32 { @twice(@inc, @twice(fn (%y: int32) -> int32 { multiply(%y, 2) }, %x)) }"""
    assert number(text, 3) == 14


def test_data_types() -> None:
    text = (
        LIST
        + """def @range(%n: int32) -> List[int32] { if (equal(%n, 0)) { Nil } else { Cons(%n, @range(subtract(%n, 1))) } }
    def @sum(%l: List[int32]) -> int32 {
      match (%l) { Cons(%x, Cons(%y, %rest)) => { add(add(%x, %y), @sum(%rest)) }, Cons(%x, Nil) => { %x }, Nil => { 0 }, }
    }
    def @main(%n: int32) -> int32 { @sum(@range(%n)) }"""
    )
    assert number(text, 0) == 0
    assert number(text, 5) == 15
    assert number(text, 10_000) == 50_005_000
    value = interpret(parse_mir(text), "range", [np.array(1, np.int32)])
    assert isinstance(value, AdtValue) and repr(value) == "Cons(…)" and repr(value.fields[1]) == "Nil()"
    with pytest.raises(MirError, match="which is not a tensor"):
        flatten(value)


def test_constructors_are_functions() -> None:
    text = LIST + "def @main(%x: int32) { let %f = Cons; match (%f(%x, Nil)) { Cons(%y, _) => { %y }, Nil => { 0 }, } }"
    assert number(text, 7) == 7


def test_match_on_tuples_and_without_a_fitting_clause() -> None:
    text = LIST + "def @main(%l: List[int32]) { match? ((%l, 1)) { (Cons(%x, _), %y) => { add(%x, %y) }, } }"
    nil = AdtValue("List", "Nil", ())
    assert number(text, AdtValue("List", "Cons", (np.array(4, np.int32), nil))) == 5
    with pytest.raises(MirError, match=r"no clause of the match fits \(Nil\(\), int32\[\]\)"):
        run(text, nil)


def test_references_keep_their_order() -> None:
    text = """def @main(%x: int32) {
      let %r = ref(%x);
      let %a = ref_read(%r);
      let %_ = ref_write(%r, add(%a, 1));
      let %b = ref_read(%r);
      (%a, %b)
    }"""
    assert run(text, 5) == (5, 6)


def test_a_closure_may_be_the_result() -> None:
    assert isinstance(run("def @main(%x: int32) { fn (%y: int32) { add(%x, %y) } }", 1), Closure)


def test_calls_of_tir_and_te() -> None:
    text = """def @main(%x: Tensor[(4), float32]) { call_tir(@double, call_tir(@inc, %x)) }
@T.prim_func
def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[i] * T.float32(2)

@te.func
def inc():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1, name="B")
    return [A, B]
"""
    np.testing.assert_array_equal(run(text, np.arange(4, dtype=np.float32)), [2, 4, 6, 8])


def test_the_order_of_a_sum_does_not_follow_the_memory() -> None:
    x = np.sin(np.arange(3840, dtype=np.float32)).reshape(1, 4, 24, 40)
    moved = parse_mir(
        'def @main(%x: Tensor[(1, 4, 24, 40), float32]) { sum(layout_transform(%x, src_layout="NCHW", dst_layout="NHWC")) }'
    )
    plain = parse_mir("def @main(%x: Tensor[(1, 24, 40, 4), float32]) { sum(%x) }")
    assert interpret(moved, "main", [x]) == interpret(plain, "main", [np.ascontiguousarray(x.transpose(0, 2, 3, 1))])


def test_a_long_chain() -> None:
    lines = "\n".join(f"  %{n + 1} = add(%{n}, %x);" for n in range(4_000))
    assert number(f"def @main(%x: int32) {{\n  %0 = add(%x, %x);\n{lines}\n  %4000\n}}", 1) == 4_002


def test_nesting() -> None:
    depth = 500
    text = "def @main(%x: int32) { " + "if (less(%x, 0)) { %x } else { " * depth + "add(%x, 1)" + " }" * depth + " }"
    assert number(text, 3) == 4


def test_bfloat16_and_no_warnings(recwarn: pytest.WarningsRecorder) -> None:
    import ml_dtypes

    x = np.array([1.0, 0.0, -1.0], ml_dtypes.bfloat16)
    result = run("def @main(%x: Tensor[(3), bfloat16]) { divide(%x, subtract(%x, %x)) }", x)
    assert isinstance(result, np.ndarray) and result.dtype == x.dtype
    assert np.isinf(result.astype(np.float32)[0]) and np.isnan(result.astype(np.float32)[1])
    assert [str(w.message) for w in recwarn.list] == []


@pytest.mark.parametrize(
    ("text", "args", "message"),
    [
        ("def @main(%x: int32) { %x }", (), "@main takes 1 argument, not 0"),
        (
            "def @main(%x: Tensor[(2), float32]) { %x }",
            (np.zeros(3, np.float32),),
            r"the argument for %x of @main is float32\[3\], which is not of type Tensor\[\(2\), float32\]",
        ),
        ("def @f(%x: int32) { %x }", (1,), "the module has no Relay function '@main'; it has @f"),
    ],
)
def test_arguments_that_do_not_fit(text: str, args: tuple[object, ...], message: str) -> None:
    with pytest.raises(MirError, match=message):
        run(text, *args)


def test_an_operator_that_fails_on_its_data() -> None:
    text = 'def @main(%a: float32, %b: float32) {\n  arange(%a, %a, %b, dtype="float32")\n}'
    with pytest.raises(MirError, match="arange: the step must not be 0") as error:
        run(text, np.array(1, np.float32), np.array(0, np.float32))
    assert "2:3" in str(error.value)
