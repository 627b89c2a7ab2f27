"""Direct calls of Relay programs of open sizes: the same results and the same errors as careful ones, nothing leaked."""

from __future__ import annotations

import sys
import threading
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.lowering.driver.loading.relay_executable import OutOfMemoryError, RelayExecutable
from mirstack.support.diagnostics import MirError

LAYER = """
def @main(%x: Tensor[(?, 4), float32], %w: Tensor[(?, ?), float32], %n: int64) {
  (nn.dense(%x, %w, units=None), sum(%x, axis=[0]), %w, multiply(%n, 2i64), argwhere(greater(%x, 0f)))
}
"""
N = np.array(21)


def program(text: str) -> RelayExecutable:
    compiled = mirstack.compile(mirstack.parse(text), threads=1, specialize=False)
    assert isinstance(compiled, RelayExecutable)
    return compiled


def is_direct(program: RelayExecutable, *args: Any) -> bool:
    return program._direct_call(*args) is not NotImplemented


def drawn(*shape: int) -> Any:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def check(results: Any, x: Any, w: Any) -> None:
    dense, total, same, twice, places = results
    np.testing.assert_allclose(dense, x @ w.T, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(total, x.sum(axis=0), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(same, w)
    assert same.flags.owndata and same.flags.writeable
    assert twice == 42
    np.testing.assert_array_equal(places, np.argwhere(x > 0))


@pytest.fixture(scope="module")
def layer() -> RelayExecutable:
    """The program, called so often that the memory that it keeps is large enough for direct calls."""
    compiled = program(LAYER)
    for _ in range(3):
        compiled(drawn(40, 4), drawn(40, 4), N)
    return compiled


@pytest.mark.parametrize(("rows", "columns"), [(3, 5), (0, 5), (3, 0), (0, 0), (1, 1), (40, 40), (7, 2)])
def test_calls_of_any_size_are_direct(layer: RelayExecutable, rows: int, columns: int) -> None:
    x, w = drawn(rows, 4), drawn(columns, 4)
    results = layer._direct_call(x, w, N)
    assert results is not NotImplemented
    check(results, x, w)
    for given, wanted in zip(results, layer._careful_call((x, w, N)), strict=True):
        assert given.dtype == wanted.dtype and given.shape == wanted.shape
        np.testing.assert_array_equal(given, wanted)


X, W = drawn(3, 4), drawn(5, 4)


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        ((X, W), TypeError, r"main takes 3 arguments \(x, w, n\), not 2"),
        ((X.astype(np.float64), W, N), TypeError, "'x' must be of dtype float32, not float64"),
        ((X.ravel(), W, N), ValueError, r"'x' must have shape \(\?, 4\), not \(12,\)"),
        ((X[None], W, N), ValueError, r"'x' must have shape \(\?, 4\), not \(1, 3, 4\)"),
        ((drawn(4, 3), W, N), ValueError, r"'x' must have shape \(\?, 4\), not \(4, 3\)"),
        ((np.asfortranarray(X), W, N), ValueError, "'x' must be contiguous in row-major order"),
        ((X, W[::2], N), ValueError, "'w' must be contiguous in row-major order"),
        ((X, W, N.reshape(1)), ValueError, r"'n' must have shape \(\), not \(1,\)"),
        ((X, None, N), TypeError, "'w' must be a numpy array or a DLPack tensor, not NoneType"),
        ((X, drawn(5, 3), N), MirError, "nn.dense: dimension 1 of 'weight' is 3, but must be 4"),
        (
            (X, np.empty((1 << 31, 0), np.float32), N),
            ValueError,
            "dimension 0 of 'w' is 2147483648; native code counts up to 2147483647",
        ),
    ],
)
def test_errors_are_those_of_a_careful_call(
    layer: RelayExecutable, args: tuple[object, ...], error: type[Exception], message: str
) -> None:
    assert not is_direct(layer, *args)
    with pytest.raises(error, match=message):
        layer(*args)
    assert is_direct(layer, X, W, N)
    check(layer(X, W, N), X, W)


def test_the_largest_extent_is_taken(layer: RelayExecutable) -> None:
    with pytest.raises(MirError, match="dimension 1 of 'weight' is 0, but must be 4"):
        layer(X, np.empty(((1 << 31) - 1, 0), np.float32), N)


def test_nothing_is_leaked(layer: RelayExecutable) -> None:
    def counts() -> list[int]:
        return [sys.getrefcount(each) for each in (X, W, N, X.dtype, np.dtype(np.int64), np.ndarray, np.empty)]

    # A size whose integer Python does not share, and calls that fail after they began.
    long, wide = drawn(300, 4), drawn(5, 3)
    for _ in range(3):
        layer(long, W, N)
    assert is_direct(layer, long, W, N)
    before, blocks = counts(), sys.getallocatedblocks()
    for _ in range(1000):
        layer._direct_call(long, W, N)
        layer._direct_call(X, wide, N)
    assert counts() == before
    assert sys.getallocatedblocks() < blocks + 500


def test_large_results_are_used_again_when_they_are_dropped() -> None:
    add = program("def @main(%x: Tensor[(?, 512), float32]) { add(%x, 1f) }")
    big = np.ones((1024, 512), np.float32)
    for _ in range(3):
        add(big)
    assert is_direct(add, big)
    kept = [add(big) for _ in range(4)]
    assert len({each.__array_interface__["data"][0] for each in kept}) == 4
    assert all((each == 2).all() for each in kept)
    kept.clear()
    places = {add(big).__array_interface__["data"][0] for _ in range(6)}
    assert len(places) <= 2


def test_memory_that_runs_out_is_an_error_and_the_next_call_is_direct() -> None:
    pair = program("def @main(%x: Tensor[(?, 512), float32]) { (add(%x, 1f), exp(%x)) }")
    big = np.ones((1024, 512), np.float32)
    for _ in range(3):
        pair(big)

    class Full(list[Any]):
        def __len__(self) -> int:
            raise MemoryError("no more")

    last: Any = pair._outputs[1]
    given, last._last.given = last._last.given, Full()
    for _ in range(3):
        with pytest.raises(
            OutOfMemoryError, match=r"(?s)out of memory for the tensors of @main.*its results of known sizes"
        ):
            pair(big)
    with pytest.raises(MemoryError, match="no more"):
        pair._careful_call((big,))
    last._last.given = given
    assert is_direct(pair, big)
    np.testing.assert_array_equal(pair(big)[0], big + 1)


def test_threads_call_with_sizes_of_their_own(layer: RelayExecutable) -> None:
    arguments = [(drawn(3 + 7 * k, 4), drawn(20 - 5 * k, 4)) for k in range(4)]
    wrong: list[BaseException] = []

    def work(x: Any, w: Any) -> None:
        try:
            for _ in range(50):
                check(layer(x, w, N), x, w)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    for _ in range(2):
        layer(X, W, N)
    assert is_direct(layer, X, W, N)


def test_sizes_that_need_more_memory_are_direct_the_next_time(layer: RelayExecutable) -> None:
    x, w = drawn(3000, 4), drawn(60, 4)
    for _ in range(3):
        check(layer(x, w, N), x, w)
    assert is_direct(layer, x, w, N)
