"""Written functions whose accesses depend on data end with an error, not with the process."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from mirstack.parser import parse_mir
from mirstack.support.diagnostics import MirError

HEAD = (
    '@T.prim_func\ndef f(A: T.Buffer((64,), "float32"), I: T.Buffer((6,), "int32"), B: T.Buffer((64,), "float32")):\n'
)
FAR = 100_000_000

PROGRAMS = {
    "a gather": (
        "    for i in range(6):\n        B[i] = A[I[i]]\n",
        "@f reads outside of dimension 0 of 'A': I[…] is not below 64, or is negative",
    ),
    "a scatter on threads": (
        "    for i in T.parallel(6):\n        B[I[i]] = A[i]\n",
        "@f writes outside of dimension 0 of 'B': I[…] is not below 64, or is negative",
    ),
    "a vectorized loop": (
        "    for i in range(6):\n        for j in T.vectorized(4):\n            B[i * 4 + j] = A[I[i] + j]\n",
        "@f reads outside of dimension 0 of 'A': j + I[…] is not below 64, or is negative",
    ),
    "a ramp": (
        "    for i in range(6):\n        B[i * 4:i * 4 + 4] = A[T.Ramp(I[i], 2, 4)]\n",
        "@f reads outside of dimension 0 of 'A': I[…] is not below 64, or is negative",
    ),
    "an index for each lane": (
        "    B[0:6] = A[I[0:6]]\n",
        "@f reads outside of dimension 0 of 'A': a lane of its index is not below 64, or is negative",
    ),
    "a view": (
        "    V = T.decl_buffer((64, 1000000), data=A.data)\n    for i in range(6):\n        B[i] = V[0, I[i]]\n",
        "@f reads outside of the memory that 'V' lies in: I[…] is not below 64, or is negative",
    ),
    "a view of bytes": (
        '    V = T.decl_buffer((300,), "int8", data=A.data)\n    for i in range(6):\n        B[i] = T.Cast("float32", V[250 - i + I[i]])\n',
        "@f reads outside of the memory that 'V' lies in: I[…] - i + 250 is not below 256, or is negative",
    ),
    "a part of a buffer": (
        '    for i in range(6):\n        with T.block("B"):\n            vi = T.axis.spatial(6, i)\n'
        "            C = T.match_buffer(A[I[vi]:I[vi] + 4], (4,))\n            B[vi] = C[0] + C[3]\n",
        "@f matches 'C' with what is outside of dimension 0 of 'A': I[…] + 4 is more than 64, or I[…] is negative",
    ),
}


def arguments(*places: int) -> list[np.ndarray]:
    return [np.arange(64, dtype="float32"), np.array(places, "int32"), np.zeros(64, "float32")]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("place", [FAR, -FAR])
def test_outside(name: str, place: int) -> None:
    body, message = PROGRAMS[name]
    run = mirstack.compile(parse_mir(HEAD + body), "cpu", threads=2)
    with pytest.raises(MirError) as error:
        run(*arguments(1, 2, place, 4, 5, 6))
    assert error.value.diagnostics[0].message == message


@pytest.mark.parametrize("name", PROGRAMS)
def test_inside(name: str) -> None:
    body, _ = PROGRAMS[name]
    results: list[np.ndarray] = []
    for target in ("cpu", "interp"):
        given = arguments(1, 2, 3, 4, 5, 6)
        mirstack.compile(parse_mir(HEAD + body), target)(*given)
        results.append(given[2])
    np.testing.assert_array_equal(results[0], results[1])
    assert results[0].any()


def test_lanes_that_are_left_out() -> None:
    """A predicate excludes lanes from the access, and so from the check."""
    body = "    B[0:6] = A.vload([I[0:6]], predicate=T.Ramp(0, 1, 6) < T.Broadcast(3, 6))\n"
    run = mirstack.compile(parse_mir(HEAD + body), "cpu")
    given = arguments(7, 8, 9, FAR, FAR, FAR)
    run(*given)
    np.testing.assert_array_equal(given[2][:3], [7, 8, 9])
    with pytest.raises(MirError, match="a lane of its index is not below 64"):
        run(*arguments(7, 8, FAR, 1, 1, 1))


def test_views_may_be_smaller_than_what_is_accessed() -> None:
    """As TVM's storage_rewrite leaves them: what counts is the memory."""
    body = (
        '    m = T.allocate([128], "float32", "global")\n    V = T.Buffer((64,), data=m)\n'
        "    for i in range(64):\n        V[64 + i] = A[i]\n    for i in range(64):\n        B[i] = V[64 + i]\n"
    )
    given = arguments(0, 0, 0, 0, 0, 0)
    mirstack.compile(parse_mir(HEAD + body), "cpu")(*given)
    np.testing.assert_array_equal(given[2], given[0])


def test_tensor_expressions() -> None:
    text = (
        '@te.func\ndef f():\n    A = te.placeholder((64,), name="A")\n    I = te.placeholder((6,), "int32", name="I")\n'
        '    B = te.compute((6,), lambda i: A[I[i]], name="B")\n    return [A, I, B]\n'
    )
    run = mirstack.compile(parse_mir(text), "cpu")
    data, places, _ = arguments(1, 2, 3, 4, 5, 63)
    result = np.zeros(6, "float32")
    run(data, places, result)
    np.testing.assert_array_equal(result, places)
    with pytest.raises(MirError, match=r"@f reads outside of dimension 0 of 'A': I\[…\] is not below 64"):
        run(data, places * FAR, result)


OUTSIDE = "reads outside of dimension 0 of 'A': I[…] is not below 64, or is negative"
GATHER = {
    "TE": """@te.func
def {name}():
    A = te.placeholder((64,), name="A")
    I = te.placeholder((6,), "int32", name="I")
    B = te.compute((6,), lambda i: A[I[i]], name="B")
    return [A, I, B]
""",
    "TIR": """@T.prim_func
def {name}(A: T.Buffer((64,), "float32"), I: T.Buffer((6,), "int32"), B: T.Buffer((6,), "float32")):
    for i in range(6):
        B[i] = A[I[i]]
""",
}


@pytest.mark.parametrize("level", GATHER)
@pytest.mark.usefixtures("kept_kernels")
def test_messages_name_functions_as_they_were_written(level: str) -> None:
    """Linking calls them otherwise; and kernels that differ only in their names are compiled once where nothing says the name."""
    data, places, _ = arguments(1, 2, FAR, 4, 5, 63)
    for name in ("pick", "choose", "sin"):
        main = "def @main(%a: Tensor[(64), float32], %i: Tensor[(6), int32]) -> Tensor[(6), float32] {\n"
        text = f"{GATHER[level].format(name=name)}\n{main}    call_tir(@{name}, %a, %i)\n}}\n"
        run = mirstack.compile(parse_mir(text), "cpu")
        with pytest.raises(MirError) as error:
            run(data, places)
        assert error.value.diagnostics[0].message == f"@{name} {OUTSIDE}"
