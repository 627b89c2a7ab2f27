"""What executables accept, refuse and return; the same for native code and the interpreters."""

import re
import threading
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.support.diagnostics import MirError

RELAY = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %n: int32) { (add(%x, 1f), add(%n, 1)) }
"""

TIR = """
@T.prim_func
def scale(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), s: T.float32):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * s
"""

SYMBOLIC = """
@T.prim_func
def double(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi] + A[vi]
"""

TE = """
@te.func
def scale():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    return [A, B]
"""

X = np.arange(6, dtype=np.float32).reshape(2, 3)
N = np.int32(4)

both = pytest.mark.parametrize("target", ["cpu", "interp"])


@pytest.fixture(params=["cpu", "interp"])
def relay(request: pytest.FixtureRequest) -> mirstack.Executable:
    return mirstack.compile(mirstack.parse(RELAY), request.param)


SCALARS = "def @main(%f: float32, %h: float16, %b: bool, %u: uint8) { (%f, %h, %b, %u) }"


@both
def test_numbers_are_converted_exactly(target: Any):
    function = mirstack.compile(mirstack.parse(SCALARS), target)
    assert list(map(np.asarray, function(3, 0.5, 1, np.int64(255)))) == [3.0, 0.5, True, 255]
    assert list(map(np.asarray, function(3.4028235e38, np.float32(65504), False, True))) == [
        np.finfo(np.float32).max,
        65504.0,
        False,
        1,
    ]
    for position, value, what in (
        (0, 1e39, "'f' is 1e+39, which float32 cannot hold"),
        (0, 10**400, "'f' is an integer of 1329 bits, which float32 cannot hold"),
        (1, 70000, "'h' is 70000, which float16 cannot hold"),
        (2, 2, "'b' is 2, which bool cannot hold"),
        (3, -1, "'u' is -1, which uint8 cannot hold"),
    ):
        arguments: list[object] = [0, 0, 0, 0]
        arguments[position] = value
        with pytest.raises(ValueError, match=re.escape(what)):
            function(*arguments)
    assert np.isinf(np.asarray(function(float("inf"), 0, 0, 0)[0]))


def test_relay_returns_its_result(relay: mirstack.Executable):
    y, m = relay(X, N)
    np.testing.assert_array_equal(y, X + 1)
    assert m == 5
    assert np.asarray(m).dtype == np.int32
    assert relay.kind == "relay"
    assert [(p.name, p.shape, p.dtype) for p in relay.params] == [("x", (2, 3), "float32"), ("n", (), "int32")]
    assert list(relay.run({"x": X, "n": N})) == ["out0", "out1"]


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        ((X,), TypeError, r"main takes 2 arguments \(x, n\), not 1"),
        ((X.astype(np.float64), N), TypeError, "'x' must be of dtype float32, not float64"),
        ((X[:, :2], N), ValueError, r"'x' must have shape \(2, 3\), not \(2, 2\)"),
        ((np.asfortranarray(X), N), ValueError, "'x' must be contiguous in row-major order"),
        ((X, 1.5), TypeError, "'n' must be of dtype int32, not a float"),
        ((X, np.float64(2)), TypeError, "'n' must be of dtype int32, not a float"),
        ((X, 2**40), ValueError, "'n' is 1099511627776, which int32 cannot hold"),
        ((X, 10**5000), ValueError, "'n' is an integer of 16610 bits, which int32 cannot hold"),
        ((np.float32(1), N), ValueError, r"'x' must have shape \(2, 3\), not \(\)"),
        ((X.tolist(), N), TypeError, r"a DLPack tensor, not list: np\.asarray\(…, 'float32'\) makes one"),
    ],
)
def test_what_does_not_fit_is_refused(
    relay: mirstack.Executable, args: tuple[object, ...], error: type[Exception], message: str
):
    with pytest.raises(error, match=message):
        relay(*args)


def test_run_names_what_is_missing_or_unknown(relay: mirstack.Executable):
    with pytest.raises(ValueError, match="main needs a value for n"):
        relay.run({"x": X})
    with pytest.raises(ValueError, match="main has no parameter 'y'; it has x, n"):
        relay.run({"x": X, "n": N, "y": X})


class OnlyDLPack:
    """A tensor of another library, as far as DLPack shows it."""

    def __init__(self, array: np.ndarray):
        self.array = array

    def __dlpack__(self, **options: Any) -> object:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_dlpack_tensors_are_taken(relay: mirstack.Executable):
    np.testing.assert_array_equal(relay(OnlyDLPack(X), N)[0], X + 1)


def test_results_are_the_callers_own(relay: mirstack.Executable):
    first = relay(X, N)[0]
    relay(X + 1, N)
    np.testing.assert_array_equal(first, X + 1)


@both
def test_tir_writes_into_the_buffers_it_is_given(target: Any):
    scale = mirstack.compile(mirstack.parse(TIR), target)
    a, b = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    assert scale(a, b, 3.0) is None
    np.testing.assert_array_equal(b, a * 3)
    assert [(p.name, p.is_output, p.is_scalar) for p in scale.params] == [
        ("A", False, False),
        ("B", True, False),
        ("s", False, True),
    ]
    np.testing.assert_array_equal(scale.run({"A": a, "s": 2.0})["B"], a * 2)
    b.flags.writeable = False
    with pytest.raises(ValueError, match="'B' is written, but the array is read-only"):
        scale(a, b, 1.0)


def test_buffers_that_share_memory_are_refused():
    scale = mirstack.compile(mirstack.parse(TIR))
    a = np.zeros(8, np.float32)
    with pytest.raises(ValueError, match="'B' is written, but shares memory with 'A'"):
        scale(a[:4], a[2:6], 1.0)
    scale(a[:4], a[4:], 1.0)


@both
@pytest.mark.parametrize(("text", "names"), [(SYMBOLIC, ("a", "b")), (TE, ("A", "B"))])
def test_symbolic_sizes_come_from_the_arrays(target: Any, text: str, names: tuple[str, str]):
    double = mirstack.compile(mirstack.parse(text), target)
    for n in (1, 7, 64):
        a = np.random.default_rng(n).standard_normal(n).astype(np.float32)
        results = double.run({names[0]: a})
        np.testing.assert_array_equal(results[names[1]], a * 2)
    with pytest.raises((ValueError, MirError)):
        double(np.zeros(3, np.float32), np.zeros(4, np.float32))


def test_the_entry_is_the_only_function_else_main():
    two = "def @f(%x: float32) { %x }\ndef @g(%x: float32) { %x }\n"
    with pytest.raises(MirError, match="several functions and no main") as raised:
        mirstack.compile(mirstack.parse(two))
    assert "it has f, g" in str(raised.value)
    assert mirstack.compile(mirstack.parse(two), entry="g").name == "g"
    with pytest.raises(MirError, match="no function 'h'"):
        mirstack.compile(mirstack.parse(two), entry="h")
    with pytest.raises(MirError, match="the module has no function 'mian'; did you mean 'main'") as raised:
        mirstack.compile(mirstack.parse("def @main(%x: float32) { %x }"), entry="mian")
    assert "choose one: --entry NAME (mir-run), entry='NAME' (mirstack.compile)" in str(raised.value)
    with pytest.raises(MirError, match="the module has no functions\nnote: nothing of it can be run"):
        mirstack.compile(mirstack.parse("rewrite @a { exp(log(%x)) => %x }"))


def test_wrong_options_are_named():
    module = mirstack.parse(RELAY)
    with pytest.raises(ValueError, match="there is no target 'gpu'"):
        mirstack.compile(module, "gpu")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="opt_level is an integer from 0 to 3, not 4"):
        mirstack.compile(module, opt_level=4)
    with pytest.raises(ValueError, match="threads is an integer from 1 on, not 0"):
        mirstack.compile(module, threads=0)
    with pytest.raises(MirError, match=r"no\.mir cannot be read: No such file or directory"):
        mirstack.compile("no.mir")


def test_compiling_leaves_the_module_as_it_is():
    module = mirstack.parse(RELAY)
    before = str(module)
    mirstack.compile(module)
    assert str(module) == before


def test_calls_release_the_interpreter_lock():
    """Two threads in the same executable at once get their own results."""
    text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(64, 64), float32]) { nn.dense(exp(%x), tanh(%x), units=64) }\n'
    model = mirstack.compile(mirstack.parse(text))
    inputs = [np.full((64, 64), k / 8, np.float32) for k in range(4)]
    expected = [model(x) for x in inputs]
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(100):
            if not np.array_equal(model(inputs[k]), expected[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_large_results_stay_the_callers_as_long_as_it_looks_at_them():
    text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(1024, 512), float32]) { add(%x, 1f) }\n'
    model = mirstack.compile(mirstack.parse(text))
    kept = [model(np.full((1024, 512), k, np.float32)) for k in range(4)]
    view = model(np.full((1024, 512), 4, np.float32))[5:7]
    for k in range(5, 9):
        model(np.full((1024, 512), k, np.float32))
    for k in range(4):
        np.testing.assert_array_equal(kept[k], k + 1)
    np.testing.assert_array_equal(view, 5)


@pytest.mark.parametrize("target", ["cpu", "interp"])
def test_arrays_of_nd_are_taken(target: Any):
    relay = mirstack.compile(mirstack.parse("def @main(%x: Tensor[(3), float32]) { negative(%x) }"), target)
    text = '@T.prim_func\ndef f(A: T.Buffer((3,), "float32"), n: T.int32):\n    A[n] = A[n] + T.float32(1)\n'
    kernel = mirstack.compile(mirstack.parse(text), target)
    array = mirstack.nd.array(np.ones(3, np.float32))
    assert relay(array).tolist() == relay.run({"x": array})["out0"].tolist() == [-1, -1, -1]
    kernel(array, 2)
    kernel.run({"A": array, "n": 0})
    assert array.numpy().tolist() == [2, 1, 2]


STRIDED = """@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int32()
    m = T.int32()
    s0 = T.int32()
    s1 = T.int32()
    A = T.match_buffer(a, (n, m), "float32", strides=({strides}))
    B = T.match_buffer(b, (n, m), "float32")
    for i, j in T.grid(n, m):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
"""


@pytest.mark.parametrize("target", ["cpu", "interp"])
def test_arrays_of_any_strides_where_these_are_symbols(target: Any):
    program = mirstack.compile(mirstack.parse(STRIDED.format(strides="s0, s1")), target)
    rows = np.arange(48, dtype=np.float32).reshape(6, 8)
    for array in (rows, rows.T, rows[::2, 1:5], rows[:, ::-1], rows[2:3], rows[:, :1]):
        result = np.zeros(array.shape, np.float32)
        program(array, result)
        assert (result == array * 2).all()
    if target == "interp":
        return
    buffer = np.zeros((6, 16), np.float32)
    with pytest.raises(ValueError, match="'b' is written, but shares memory with 'a'"):
        program(buffer.reshape(-1)[:48].reshape(8, 6).T, buffer.reshape(-1)[40:88].reshape(6, 8)[:, :8])


@pytest.mark.parametrize(
    ("strides", "message"),
    [("s0, 1", "'a' must have stride 1 along axis 1, not 2"), ("m * 4, 2", "stride 0 of 'a' is 8, but must be 16")],
)
def test_strides_that_are_not_those_stated(strides: str, message: str):
    program = mirstack.compile(mirstack.parse(STRIDED.format(strides=strides)))
    rows = np.arange(48, dtype=np.float32).reshape(6, 8)
    with pytest.raises((ValueError, MirError), match=message.replace("*", r"\*")):
        program(rows[:, ::2], np.zeros((6, 4), np.float32))


@pytest.mark.parametrize("target", ["cpu", "interp"])
def test_sizes_that_do_not_fit_are_located(target: Any):
    te_function = """@te.func
def f():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    return [A, B]
"""
    tir_function = STRIDED.format(strides="s0, s1")
    ones = np.ones((4, 4), np.float32)
    program = mirstack.compile(mirstack.parse(te_function, "te.mir"), target)
    with pytest.raises(MirError, match=r"te\.mir:5:\d+: error: dimension 0 of 'B' is 4, but must be n = 3"):
        program(ones[0, :3], ones[0].copy())
    program = mirstack.compile(mirstack.parse(tir_function, "tir.mir"), target)
    with pytest.raises(MirError, match=r"tir\.mir:8:\d+: error: dimension 1 of 'b' is 3, but must be m = 4"):
        program(ones, ones[:, :3].copy())


NAMED = "def @main(%x: Tensor[(2), float32], %t: (Tensor[(2), float32], Tensor[(2), float32])) { subtract(%x, %t.1) }"


@pytest.mark.parametrize("target", ["cpu", "interp"])
def test_arguments_by_name(target: Any):
    x, one = np.array([5, 7], np.float32), np.ones(2, np.float32)
    program = mirstack.compile(mirstack.parse(NAMED), target)
    for result in (program(x=x, t=(x, one)), program(t=(x, one), x=x), program(x, t=(x, one))):
        assert result.tolist() == [4, 6]
    for args, named, message in [
        ((x,), {"T": (x, one)}, "main has no parameter 'T'; it has x, t"),
        ((x,), {"x": x}, "main is given 'x' twice, in its place and by its name"),
        ((x,), {"xs": x}, "main has no parameter 'xs'"),
        ((), {"t": (x, one)}, "main needs a value for x"),
    ]:
        with pytest.raises(TypeError, match=message):
            program(*args, **named)
    kernel = mirstack.compile(mirstack.parse(STRIDED.format(strides="s0, s1")), target)
    result = np.zeros((1, 2), np.float32)
    kernel(b=result, a=x[None])
    assert result.tolist() == [[10, 14]]


@pytest.mark.parametrize("target", ["cpu", "interp"])
def test_arrays_of_the_other_byte_order(target: Any):
    program = mirstack.compile(mirstack.parse("def @main(%x: Tensor[(2), float32]) { exp(%x) }"), target)
    array = np.ones(2, np.dtype(np.float32).newbyteorder())
    with pytest.raises(TypeError, match=r"which is of the other byte order: pass \.astype\('float32'\) of it"):
        program(array)
