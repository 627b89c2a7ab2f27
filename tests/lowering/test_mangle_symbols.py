"""Functions that are called as ones of the C library, of the runtime or of LLVM compute what their bodies say."""

import mirstack
import numpy as np
import pytest
from mirstack.lowering.mangle_symbols import linked_name

NAMES = ["exp", "fmodf", "malloc", "free", "memset", "printf", "sqrtf", "main", "mirstack_parallel_for", "user.exp"]

TIR = """@T.prim_func
def {name}(A: T.Buffer((4096,), "float32"), D: T.Buffer((4096,), "float64")):
    X = T.alloc_buffer((1000000,), "float32")
    for i in T.parallel(4096):
        X[i] = T.fmod(A[i], T.float32(0.3))
    for i in range(4096):
        A[i] = T.float32(0)
    for i in range(4096):
        D[i] = T.exp(D[i]) + T.Cast("float64", X[i])
"""
RELAY = """
type List[A] {{ Cons(A, List[A]), Nil }}
def @"{name}"(%n: int32) -> List[int32] {{ if (%n == 0) {{ Nil }} else {{ Cons(%n, @"{name}"(%n - 1)) }} }}
def @sum(%l: List[int32]) -> int32 {{ match (%l) {{ Nil => {{ 0 }}, Cons(%h, %t) => {{ %h + @sum(%t) }} }} }}
def @top() -> int32 {{ @sum(@"{name}"(5)) }}
"""


@pytest.mark.parametrize("name", [n for n in NAMES if n.isidentifier()])
def test_tir_functions(name: str):
    a, d = np.linspace(0, 1, 4096, dtype=np.float32), np.linspace(0, 1, 4096)
    expected = np.exp(d) + np.fmod(a, np.float32(0.3))
    mirstack.compile(mirstack.parse(TIR.format(name=name)), entry=name)(a, d)
    np.testing.assert_allclose(d, expected, 1e-6)
    assert not a.any()


@pytest.mark.parametrize("name", NAMES)
def test_relay_functions(name: str):
    assert mirstack.compile(mirstack.parse(RELAY.format(name=name)), entry="top")() == 15


def test_a_relay_function_is_not_the_operator_of_its_name():
    text = (
        "def @exp(%x: Tensor[(8), float64]) { if (less(min(%x), 0f64)) { @exp(add(%x, 1f64)) } else { exp(%x) } }\n"
        "def @main(%x: Tensor[(8), float64]) { @exp(%x) }"
    )
    x = np.linspace(-1.5, 1, 8)
    np.testing.assert_allclose(mirstack.compile(mirstack.parse(text))(x), np.exp(x + 2), 1e-12)


def test_other_names_stay():
    assert [linked_name(n) for n in ("main", "expand", "memory", "exp")] == ["main", "expand", "memory", "user.exp"]
    assert linked_name("user.exp") == "user.user.exp"
