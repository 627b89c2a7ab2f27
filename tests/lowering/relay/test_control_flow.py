"""Relay's control flow, closures and data types in native code: the same results as the interpreter, from the same text."""

import threading
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.lowering.driver.loading.executable import Param
from mirstack.support.diagnostics import MirError

HEAD = '#[version = "0.0.5"]\n'

PROGRAMS = {
    "chain": "def @main(%x: Tensor[(3, 4), float32]) { multiply(exp(add(%x, 1f)), 2f) }",
    "parameter returned": "def @main(%x: Tensor[(3), float32]) { %x }",
    "constant returned": "def @main() { 2.5f }",
    "tuple with repeats": "def @main(%x: Tensor[(3), float32]) { %0 = add(%x, 1f); (%0, (%x, %0), 3) }",
    "projection": "def @main(%x: Tensor[(3), float32]) { %0 = (exp(%x), tanh(%x)); add(%0.0, %0.1) }",
    "let": "def @main(%x: Tensor[(3), float32]) { let %y = add(%x, %x); let %z = %y; multiply(%z, %y) }",
    "if": """def @main(%c: bool, %x: Tensor[(3), float32]) {
        if (%c) { add(%x, 1f) } else { %x } }""",
    "if not at the end": """def @main(%c: bool, %x: Tensor[(3), float32]) {
        %0 = if (%c) { add(%x, 1f) } else { %x };
        %1 = exp(%x);
        add(%0, %1) }""",
    "nested if of tuples": """def @main(%c: bool, %d: bool, %x: Tensor[(3), float32]) {
        %0 = if (%c) { if (%d) { (add(%x, 1f), %x) } else { (%x, exp(%x)) } } else { (%x, %x) };
        subtract(%0.0, %0.1) }""",
    "calls": """def @twice(%x: Tensor[(3), float32]) -> Tensor[(3), float32] { add(%x, %x) }
        def @pair(%x: Tensor[(3), float32]) -> (Tensor[(3), float32], Tensor[(3), float32]) { (@twice(%x), %x) }
        def @main(%x: Tensor[(3), float32]) { %0 = @pair(@twice(%x)); add(%0.0, @twice(%0.1)) }""",
    "recursion": """def @sum_up(%i: int32) -> int32 {
        if (equal(%i, 0)) { %i } else { add(@sum_up(subtract(%i, 1)), %i) } }
        def @main(%i: int32) -> int32 { @sum_up(%i) }""",
    "mutual recursion": """def @even(%n: int32) -> bool { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }
        def @odd(%n: int32) -> bool { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }
        def @main(%n: int32) -> bool { @even(%n) }""",
    "a loop of tensors": """def @loop(%i: int32, %x: Tensor[(3), float32]) -> Tensor[(3), float32] {
        if (equal(%i, 0)) { %x } else { @loop(subtract(%i, 1), multiply(%x, 0.5f)) } }
        def @main(%i: int32, %x: Tensor[(3), float32]) -> Tensor[(3), float32] { @loop(%i, %x) }""",
    "closure": """def @main(%x: Tensor[(3), float32], %y: Tensor[(3), float32]) {
        let %f = fn (%a: Tensor[(3), float32]) -> Tensor[(3), float32] { add(%a, %y) };
        %f(%f(%x)) }""",
    "closure made in a call": """def @adder(%y: Tensor[(3), float32]) -> fn (Tensor[(3), float32]) -> Tensor[(3), float32] {
        %0 = exp(%y);
        fn (%a: Tensor[(3), float32]) -> Tensor[(3), float32] { add(%a, %0) } }
        def @main(%x: Tensor[(3), float32]) { %0 = @adder(%x); %0(%x) }""",
    "recursive closure": """def @main(%n: int32) -> int32 {
        let %f = fn (%i: int32) -> int32 { if (equal(%i, 0)) { 0 } else { add(%i, %f(subtract(%i, 1))) } };
        %f(%n) }""",
    "functions as arguments": """def @apply(%f: fn (float32) -> float32, %x: float32) -> float32 { %f(%f(%x)) }
        def @inc(%x: float32) -> float32 { add(%x, 1f) }
        def @main(%x: float32) -> float32 { @apply(@inc, %x) }""",
    "generic functions": """def @id[A](%x: A) -> A { %x }
        def @apply[A, B](%f: fn (A) -> B, %x: A) -> B { %f(%x) }
        def @main(%x: Tensor[(3), float32], %n: int32) {
          (@id(%x), @id(%n), @apply(@id, %x), @apply(fn [A](%v: A) -> A { %v }, %n)) }""",
    "list": """type List[A] { Cons(A, List[A]), Nil, }
        def @sum(%l: List[float32]) -> float32 {
          match (%l) { Cons(%h, %t) => { add(%h, @sum(%t)) }, Nil => { 0f }, } }
        def @main(%a: float32, %b: float32) -> float32 { @sum(Cons(%a, Cons(%b, Cons(2f, Nil)))) }""",
    "generic list and map": """type List[A] { Cons(A, List[A]), Nil, }
        def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
          match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil }, } }
        def @sum(%l: List[int32]) -> int32 {
          match (%l) { Cons(%h, %t) => { add(%h, @sum(%t)) }, Nil => { 0 }, } }
        def @main(%a: int32, %b: int32) -> int32 {
          @sum(@map(fn (%x: int32) -> int32 { multiply(%x, %x) }, Cons(%a, Cons(%b, Nil)))) }""",
    "nested patterns": """type Option[A] { Some(A), None, }
        def @main(%c: bool, %x: float32, %y: float32) -> float32 {
          let %o: Option[float32] = if (%c) { Some(%x) } else { None };
          match ((%o, %y)) { (Some(%v), _) => { add(%v, 1f) }, (None, %w) => { negative(%w) }, } }""",
    "references": """def @main(%c: bool, %x: float32) -> float32 {
        let %r = ref(%x);
        let %u = fn () { ref_write(%r, add(ref_read(%r), ref_read(%r))) };
        let %e = if (%c) { %u() } else { () };
        let %f = %u();
        ref_read(%r) }""",
}

GENERATOR = np.random.default_rng(0)


def value(param: Param) -> Any:
    if param.dtype == "bool":
        return np.asarray(GENERATOR.integers(0, 2)).astype(bool)
    if param.dtype == "int32":
        return np.asarray(GENERATOR.integers(1, 10), dtype=np.int32)
    return np.asarray(GENERATOR.standard_normal([n for n in param.shape if isinstance(n, int)]), dtype=np.float32)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("opt_level", [0, 3])
def test_native_code_means_what_the_interpreter_does(name: str, opt_level: int):
    module = mirstack.parse(HEAD + PROGRAMS[name])
    native = mirstack.compile(module, opt_level=opt_level, entry="main")
    meaning = mirstack.compile(module, "interp", entry="main")
    for _ in range(4):
        inputs = {param.name: value(param) for param in native.params}
        expected, actual = meaning.run(inputs), native.run(inputs)
        assert list(expected) == list(actual)
        for key in expected:
            np.testing.assert_allclose(actual[key], expected[key], rtol=1e-5, atol=1e-6)


def compiled(name: str) -> mirstack.Executable:
    return mirstack.compile(mirstack.parse(HEAD + PROGRAMS[name]), entry="main")


def test_recursion_of_ten_thousand_calls():
    assert compiled("recursion")(np.int32(10_000)) == 50_005_000
    x = np.full(3, 8, np.float32)
    np.testing.assert_array_equal(compiled("a loop of tensors")(np.int32(10_000), x), 0)


def test_recursion_without_end_is_an_error_and_the_process_lives():
    endless = mirstack.compile(mirstack.parse(HEAD + "def @main(%x: float32) -> float32 { add(@main(%x), 1f) }"))
    for _ in range(2):
        with pytest.raises(MirError, match="the recursion is deeper than the stack allows"):
            endless(np.float32(1))


def test_a_match_that_fits_no_clause_is_an_error():
    text = """type Option[A] { Some(A), None, }
        def @main(%c: bool) -> float32 {
          let %o: Option[float32] = if (%c) { Some(1f) } else { None };
          match? (%o) { Some(%v) => { %v }, } }"""
    executable = mirstack.compile(mirstack.parse(HEAD + text, "o.mir"))
    assert executable(np.array(True)) == 1
    with pytest.raises(MirError, match=r"o\.mir:5:\d+: error: no clause of this match fits the value"):
        executable(np.array(False))


def test_calls_from_several_threads_at_once():
    executable = compiled("a loop of tensors")
    results: dict[int, np.ndarray] = {}

    def work(k: int) -> None:
        for _ in range(50):
            results[k] = executable(np.int32(3), np.full(3, 8 * k, np.float32))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        np.testing.assert_array_equal(results[k], k)
