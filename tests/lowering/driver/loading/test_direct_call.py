"""Direct calls of Relay programs: the same results and the same errors as careful ones, nothing leaked, whoever calls."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.lowering.driver.loading import direct_call
from mirstack.lowering.driver.loading.relay_executable import RelayExecutable
from mirstack.support.diagnostics import MirError

PAIR = """
def @main(%x: Tensor[(3, 4), float32], %n: int64) { (add(%x, 1f), multiply(%n, 2i64)) }
"""

DEEP = """
def @down(%n: int32, %x: Tensor[(4), float32]) -> Tensor[(4), float32] {
  if (less(%n, 1)) { %x } else { add(@down(subtract(%n, 1), %x), 1f) }
}
def @main(%n: int32, %x: Tensor[(4), float32]) { @down(%n, %x) }
"""

X = np.arange(12, dtype=np.float32).reshape(3, 4)
N = np.array(21)


def warm(text: str, *args: Any) -> RelayExecutable:
    """The program, called so often that it is called directly."""
    program = mirstack.compile(mirstack.parse(text), threads=1)
    assert isinstance(program, RelayExecutable)
    for _ in range(3):
        program(*args)
    return program


def is_direct(program: RelayExecutable, *args: Any) -> bool:
    return program._direct_call(*args) is not NotImplemented


@pytest.fixture(scope="module")
def pair() -> RelayExecutable:
    return warm(PAIR, X, N)


def test_a_usual_call_is_direct(pair: RelayExecutable) -> None:
    assert is_direct(pair, X, N)
    y, m = pair(X, N)
    np.testing.assert_array_equal(y, X + 1)
    assert type(m) is np.ndarray and m.shape == () and m == 42


def test_the_first_call_leaves_a_context_for_direct_ones() -> None:
    program = mirstack.compile(mirstack.parse(PAIR), threads=1)
    assert isinstance(program, RelayExecutable)
    assert not is_direct(program, X, N)
    program(X, N)
    assert is_direct(program, X, N)


class Sub(np.ndarray):
    """An array of a class of its own."""


@pytest.mark.parametrize(
    "given",
    [X.view(Sub), np.lib.stride_tricks.as_strided(X, X.shape, X.strides), X.astype(X.dtype.newbyteorder("=")), X[::1]],
)
def test_what_is_as_good_is_taken(pair: RelayExecutable, given: np.ndarray) -> None:
    np.testing.assert_array_equal(pair(given, N)[0], X + 1)


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        ((), TypeError, r"main takes 2 arguments \(x, n\), not 0"),
        ((X, N, N), TypeError, r"main takes 2 arguments \(x, n\), not 3"),
        ((X.astype(np.float64), N), TypeError, "'x' must be of dtype float32, not float64"),
        ((X.astype(">f4"), N), TypeError, "'x' must be of dtype float32, not >f4"),
        ((X.ravel(), N), ValueError, r"'x' must have shape \(3, 4\), not \(12,\)"),
        ((X.reshape(4, 3), N), ValueError, r"'x' must have shape \(3, 4\), not \(4, 3\)"),
        ((np.asfortranarray(X), N), ValueError, "'x' must be contiguous in row-major order"),
        ((X, N.reshape(1)), ValueError, r"'n' must have shape \(\), not \(1,\)"),
        ((None, N), TypeError, "'x' must be a numpy array or a DLPack tensor, not NoneType"),
        ((NotImplemented, N), TypeError, "'x' must be a numpy array or a DLPack tensor, not NotImplementedType"),
        ((np.ndarray, N), TypeError, "'x' must be a numpy array or a DLPack tensor, not type"),
    ],
)
def test_errors_are_those_of_a_careful_call(
    pair: RelayExecutable, args: tuple[object, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        pair(*args)
    assert is_direct(pair, X, N)


def test_any_array_is_taken_or_refused_as_by_a_careful_call(pair: RelayExecutable) -> None:
    rng = np.random.default_rng(0)
    base = rng.integers(0, 100, 400).astype(np.int8).view(np.uint8)
    taken = 0
    for _ in range(3000):
        dtype = rng.choice(["f4", "f4", "f4", "f8", "i4", ">f4", "u1"])
        rank = rng.integers(0, 4)
        shape = tuple(rng.choice([1, 3, 4, 12], rank)) if rng.random() < 0.5 else (3, 4)
        offset = int(rng.choice([0, 4, 4, 1, 3]))
        array = np.ndarray(shape, dtype, base.tobytes() * 10, offset) if np.prod(shape) < 200 else X
        if rng.random() < 0.3:
            array = array[..., :: int(rng.choice([-1, 1, 2]))] if array.ndim else array
        if rng.random() < 0.2:
            array = array.T
        wanted = answer(pair._careful_call, (array, N))
        given = answer(pair, (array, N), unpack=True)
        assert type(wanted) is type(given)
        if isinstance(wanted, tuple):
            taken += 1
            np.testing.assert_array_equal(given[0], wanted[0])
        else:
            assert str(wanted) == str(given)
    assert taken > 300


def answer(call: Any, args: tuple[Any, ...], *, unpack: bool = False) -> Any:
    try:
        return call(*args) if unpack else call(args)
    except (TypeError, ValueError) as error:
        return error


def test_nothing_is_leaked(pair: RelayExecutable) -> None:
    def counts() -> list[int]:
        return [sys.getrefcount(each) for each in (X, N, X.dtype, N.dtype, np.ndarray, np.empty)]

    pair(X, N)
    before, declined = counts(), sys.getrefcount(NotImplemented)
    kept = [pair(X, N) for _ in range(50)]
    references = {sys.getrefcount(result[0]) for result in kept}
    assert references == {2}, "that of the tuple, and that of the question"
    del kept
    for _ in range(50):
        assert not is_direct(pair, X, X)
        assert not is_direct(pair)
    assert counts() == before
    assert abs(sys.getrefcount(NotImplemented) - declined) < 5


def test_results_are_the_callers_own(pair: RelayExecutable) -> None:
    first = pair(X, N)[0]
    second = pair(X + 1, N)[0]
    np.testing.assert_array_equal(first, X + 1)
    np.testing.assert_array_equal(second, X + 2)
    assert first.flags.owndata and first.flags.writeable


def test_large_results_are_used_again_when_they_are_dropped() -> None:
    big = np.ones((1024, 512), np.float32)
    program = warm("def @main(%x: Tensor[(1024, 512), float32]) { add(%x, 1f) }", big)
    kept = [program(big) for _ in range(4)]
    assert len({each.__array_interface__["data"][0] for each in kept}) == 4
    assert all((each == 2).all() for each in kept)
    kept.clear()
    places = {program(big).__array_interface__["data"][0] for _ in range(6)}
    assert len(places) <= 2


def test_memory_that_runs_out_is_pythons_error() -> None:
    big = np.ones((1024, 512), np.float32)
    program = warm("def @main(%x: Tensor[(1024, 512), float32]) { (exp(%x), add(%x, 1f)) }", big)

    class Full(list[Any]):
        def __len__(self) -> int:
            raise MemoryError("no more")

    output: Any = program._outputs[1]
    given, output.given = output.given, Full()
    for _ in range(3):
        with pytest.raises(MemoryError, match="out of memory for the tensors of @main"):
            program(big)
    output.given = given
    assert is_direct(program, big)
    np.testing.assert_array_equal(program(big)[1], big + 1)


def test_a_call_that_fails_raises_and_the_next_is_direct() -> None:
    x = np.zeros(4, np.float32)
    program = warm(DEEP, np.array(3, np.int32), x)
    for _ in range(3):
        with pytest.raises(MirError, match="the recursion is deeper than the stack allows"):
            program(np.array(10**9, np.int32), x)
        assert is_direct(program, np.array(3, np.int32), x)
        np.testing.assert_array_equal(program(np.array(7, np.int32), x), x + 7)


def test_heaps_that_had_to_grow_are_larger_the_next_time() -> None:
    x = np.zeros(4, np.float32)
    program = warm(DEEP, np.array(3, np.int32), x)
    deep = np.array(50_000, np.int32)
    results = [program(deep, x) for _ in range(4)]
    assert all((each == 50_000).all() for each in results)
    assert is_direct(program, deep, x)


def test_tuples_are_flattened_and_nested_results_are_built() -> None:
    text = "def @main(%p: (Tensor[(2), float32], Tensor[(2), float32])) { ((%p.0, add(%p.0, %p.1)), (%p.1, ())) }"
    a, b = np.ones(2, np.float32), np.full(2, 2, np.float32)
    program = warm(text, (a, b))
    assert is_direct(program, a, b)
    (first, total), (second, nothing) = program((a, b))
    assert (first == 1).all() and (total == 3).all() and (second == 2).all() and nothing == ()
    with pytest.raises(TypeError, match="'p' must be a tuple of 2, not one of 1"):
        program((a,))


def test_threads_have_contexts_of_their_own() -> None:
    text = "def @main(%x: Tensor[(300, 40), float32]) { let %y = nn.softmax(%x); nn.softmax(nn.relu(transpose(%y))) }"
    arrays = [np.random.default_rng(seed).standard_normal((300, 40)).astype(np.float32) for seed in range(4)]
    program = warm(text, arrays[0])
    wanted = [program._careful_call((each,)) for each in arrays]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(200):
            if not np.array_equal(program(arrays[number]), wanted[number]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    program(arrays[0])
    assert is_direct(program, arrays[0])


def test_the_function_holds_what_it_needs_and_nothing_holds_the_program() -> None:
    program = warm(PAIR, X, N)
    call = program._direct_call
    gone = weakref.ref(program)
    del program
    assert gone() is None, "a cycle would keep code and constants until the collector comes"
    gc.collect()
    for _ in range(10):
        np.testing.assert_array_equal(call(X, N)[0], X + 1)


def test_where_objects_lie_another_way_calls_are_careful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_call, "_functions", lambda: None)
    program = warm(PAIR, X, N)
    assert not is_direct(program, X, N)
    np.testing.assert_array_equal(program(X, N)[0], X + 1)


@pytest.mark.parametrize("field", ["implementation", "array"])
def test_the_layout_is_looked_at(monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    assert direct_call._reads_objects()
    if field == "implementation":
        monkeypatch.setattr(direct_call.sys, "implementation", type("Other", (), {"name": "pypy"}))
    else:
        monkeypatch.setattr(direct_call._Array, "rank", direct_call._Array.flags)
    assert not direct_call._reads_objects()
