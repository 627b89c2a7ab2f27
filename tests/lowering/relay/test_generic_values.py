"""Generic functions as values, and modules with rules, run natively as in the interpreter."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest

IDENTITY = "def @id[A](%x: A) -> A { %x }\n"
FUNCTION = "fn (int32) -> int32"

PROGRAMS = {
    "a let with a type": f"def @main(%n: int32) {{ let %f: {FUNCTION} = @id; %f(%n) }}",
    "the result of a generic function": """
        def @pick[A](%a: A) -> fn (A) -> A { @id }
        def @main(%n: int32) { @pick(%n)(1) }""",
    "the value of a branch": """
        def @pick[A](%f: fn (A) -> A, %n: int32) -> fn (A) -> A { if (equal(%n, 0)) { @id } else { %f } }
        def @main(%n: int32) { @pick(fn (%k: int32) { %k * 3 }, %n)(%n + 1) }""",
    "a field of a tuple": f"""
        def @both() -> ({FUNCTION}, int32) {{ (@id, 4) }}
        def @main(%n: int32) {{ let %p = @both(); %p.0(%n) + %p.1 }}""",
    "a field of a data type": """
        type Box[A] { Keep(fn (A) -> A, A), }
        def @box[A](%x: A) -> Box[A] { Keep(@id, %x) }
        def @main(%n: int32) { match (@box(%n)) { Keep(%f, %x) => { %f(%x) + 1 }, } }""",
    "a reference": f"""
        def @main(%n: int32) {{
          let %g: {FUNCTION} = fn (%k: int32) -> int32 {{ %k * 3 }};
          let %r = ref(%g);
          let %u = ref_write(%r, @id);
          let %f = ref_read(%r);
          %f(%n) }}""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_generic_function_is_a_value(name: str) -> None:
    module = mirstack.parse(IDENTITY + PROGRAMS[name])
    native, meaning = mirstack.compile(module, entry="main"), mirstack.compile(module, "interp", entry="main")
    for n in (0, 5):
        number = np.array(n, np.int32)
        assert native(number) == meaning(number)


def test_rules_of_a_module_are_no_code() -> None:
    text = """
rewrite @multiply_add { add(%m = multiply(%x, %y), %z) => ewise_fma(%x, %y, %z) where one_use(%m) }
ruleset @all { include @multiply_add rewrite @own { exp(log(%x)) => %x } }
def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32], %z: Tensor[(4), float32]) {
  add(%z, multiply(%x, %y))
}"""
    x = np.arange(4, dtype=np.float32)
    for opt_level in (0, 3):
        assert mirstack.compile(mirstack.parse(text), opt_level=opt_level)(x, x, x).tolist() == [0, 2, 6, 12]


PRELUDE = """type List[A] { Cons(A, List[A]), Nil, }
def @zip[A, B](%xs: List[A], %ys: List[B]) -> List[(A, B)] {
  match (%xs, %ys) {
    (Cons(%x, %x_rest), Cons(%y, %y_rest)) => Cons((%x, %y), @zip(%x_rest, %y_rest)),
    _ => { Nil },
  }
}
def @length[A](%xs: List[A]) -> int32 { match (%xs) { Cons(_, %rest) => 1 + @length(%rest), Nil => 0 } }
def @main(%n: int32) { @length(@zip(Cons(%n, Cons(%n, Nil)), Cons(%n, Nil))) }
"""


@pytest.mark.parametrize("target", ["cpu", "interp"])
def test_several_values_are_matched_as_a_tuple(target: Any) -> None:
    assert mirstack.compile(mirstack.parse(PRELUDE), target, entry="main")(np.array(4, np.int32)) == 1
