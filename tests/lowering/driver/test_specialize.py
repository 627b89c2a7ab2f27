"""Sizes of open dimensions that are met often get code of their own; nothing but the time of calls tells."""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import mirstack
import numpy as np
import pytest
from mirstack.lowering.driver import specialize
from mirstack.lowering.driver.cache.programs import wait_for_writing
from mirstack.lowering.driver.loading.relay_executable import RelayExecutable
from mirstack.lowering.driver.specialize import Variants
from mirstack.support.stopwatch import timing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")

NET = """def @main(%x: Tensor[(?, 8), float32], %w: Tensor[(?, 8), float32], %b: Tensor[(1), float32]) {
  nn.softmax(add(nn.dense(%x, %w, units=None), %b))
}"""
PAIR = (
    """def @main(%t: (Tensor[(?), float32], int32)) { (multiply(%t.0, 2f), (%t.1, reshape(%t.0, newshape=[-1, 1]))) }"""
)


@pytest.fixture(autouse=True)
def specializing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Code for sizes is wanted after three calls, and the process may be forked, whatever threads the test runner has."""
    monkeypatch.setenv("MIRSTACK_SPECIALIZE", "on")
    monkeypatch.setattr(specialize, "can_fork", lambda: True)
    monkeypatch.setattr(specialize, "WORTH_CALLS", 3)
    monkeypatch.setattr(specialize, "WORTH_SECONDS", 1e9)
    # However long compiling takes on a machine that is busy.
    monkeypatch.setattr(specialize, "FREE_SECONDS", 1e9)
    yield
    for child in multiprocessing.active_children():
        if child.name == "mirstack-specialize":
            child.kill()


def _compiled(text: str | Path, **options: Any) -> RelayExecutable:
    net = mirstack.compile(mirstack.parse(text) if isinstance(text, str) else text, **options)
    assert isinstance(net, RelayExecutable)
    return net


def _variants(net: RelayExecutable) -> Variants:
    assert net.variants is not None
    return net.variants


def _arguments(rows: int, columns: int) -> tuple[np.ndarray[Any, Any], ...]:
    random = np.random.default_rng(rows * 100 + columns)
    return tuple(random.standard_normal(shape, dtype=np.float32) for shape in ((rows, 8), (columns, 8), (1,)))


def _call_often(net: RelayExecutable, *arguments: Any) -> Any:
    """Calls until there is code for the sizes; returns what the last call of the open code returned."""
    results = [net(*arguments) for _ in range(3)]
    _variants(net).wait()
    return results[-1]


def test_results_are_those_of_the_open_code() -> None:
    net, plain = _compiled(NET), _compiled(NET, specialize=False)
    assert plain.variants is None
    sizes = [(0, 3), (1, 1), (1, 16), (2, 5), (5, 2), (16, 16), (33, 7)]
    for rows, columns in sizes:
        arguments = _arguments(rows, columns)
        _call_often(net, *arguments)
        assert ((rows, 8), (columns, 8)) in _variants(net).ready
        np.testing.assert_allclose(net(*arguments), plain(*arguments), rtol=1e-5, atol=1e-6)
    # In any order, those without code of their own among them.
    for rows, columns in [*reversed(sizes), (1, 3), (0, 3), (7, 7), (16, 16)]:
        arguments = _arguments(rows, columns)
        result = net(*arguments)
        assert result.shape == (rows, columns)
        np.testing.assert_allclose(result, plain(*arguments), rtol=1e-5, atol=1e-6)


def test_tuples_and_names() -> None:
    net = _compiled(PAIR)
    x, n = np.arange(4, dtype="float32"), np.int32(7)
    _call_often(net, (x, n))
    assert _variants(net).ready.keys() == {((4,),)}
    for size in (4, 3, 4, 0):
        x = np.arange(size, dtype="float32")
        doubled, (same, column) = net(t=(x, n))
        assert np.array_equal(doubled, x * 2) and same == n and np.array_equal(column, x[:, None])


def test_a_later_process_finds_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRSTACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MIRSTACK_CACHE_LIMIT", "1G")
    file = tmp_path / "net.mir"
    file.write_text(NET)
    arguments = _arguments(4, 6)
    _call_often(_compiled(file), *arguments)
    # As in a later process: nothing is forked.
    monkeypatch.setattr(specialize, "_forked", lambda work: pytest.fail("compiled again"))  # pyright: ignore[reportUnknownLambdaType]
    net = _compiled(file)
    _call_often(net, *arguments)
    assert ((4, 8), (6, 8)) in _variants(net).ready


def test_a_later_process_finds_the_code_at_the_second_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRSTACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MIRSTACK_CACHE_LIMIT", "1G")
    path = tmp_path / "net.mir"
    path.write_text(NET)
    arguments, sizes = _arguments(2, 3), ((2, 8), (3, 8))
    wanted = _call_often(_compiled(path), *arguments)
    wait_for_writing()
    monkeypatch.setattr(specialize, "WORTH_CALLS", 1000)
    net = _compiled(path)
    net(*arguments)
    assert sizes not in _variants(net).ready
    net(*arguments)
    assert sizes in _variants(net).ready
    np.testing.assert_allclose(net(*arguments), wanted, rtol=1e-5, atol=1e-6)
    # Sizes that no process met are not looked for again.
    for _ in range(4):
        net(*_arguments(3, 2))
    assert len(_variants(net).ready) == 1


def test_the_size_called_the_longest_ago_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialize, "MOST_VARIANTS", 2)
    net = _compiled("def @main(%x: Tensor[(?), float32]) { exp(%x) }")
    a, b, c = (np.zeros(size, "float32") for size in (1, 2, 3))
    _call_often(net, a)
    _call_often(net, b)
    net(a)
    _call_often(net, c)
    assert list(_variants(net).ready) == [((1,),), ((3,),)]
    assert np.array_equal(net(b), np.ones(2, "float32"))


def test_too_much_compiling_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialize, "FREE_SECONDS", -1e9)
    net = _compiled("def @main(%x: Tensor[(?), float32]) { exp(%x) }")
    _call_often(net, np.zeros(2, "float32"))
    assert not _variants(net).ready


def test_who_cannot_compile_is_not_asked_again() -> None:
    net = _compiled("def @main(%x: Tensor[(?), float32]) { exp(%x) }")
    asked: list[object] = []

    def fails(*given: object) -> None:
        asked.append(given)
        raise ValueError

    variants = _variants(net)
    variants.compile_for = cast("Any", fails)
    for _ in range(3):
        assert np.array_equal(_call_often(net, np.zeros(2, "float32")), np.ones(2, "float32"))
    # The process that is forked has a list of its own.
    assert not asked and not variants.ready
    variants.compile_for = cast("Any", lambda *_: None)  # pyright: ignore[reportUnknownLambdaType]
    _call_often(net, np.zeros(2, "float32"))
    assert not variants.ready


def test_errors_are_the_same_with_code_for_sizes() -> None:
    net = _compiled(NET)
    x, w, b = _arguments(2, 3)
    _call_often(net, x, w, b)
    for wrong in ((x, w), (x, w, b[:0]), (x.astype("float64"), w, b), (x[:, :7], w, b), (x, [1.0], b)):
        with pytest.raises(Exception) as found:
            net(*wrong)
        with pytest.raises(Exception) as wanted:
            _compiled(NET, specialize=False)(*wrong)
        assert (found.type, str(found.value)) == (wanted.type, str(wanted.value))


def test_it_is_not_done_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _compiled(NET, opt_level=1).variants is None
    assert _compiled(NET, observers=[lambda *_: None]).variants is None
    assert _compiled(NET, shapes={"x": (2, 8), "w": (3, 8)}).variants is None
    monkeypatch.setenv("MIRSTACK_SPECIALIZE", "off")
    assert _compiled(NET).variants is None


def test_other_threads_call_meanwhile() -> None:
    net = _compiled(NET)
    arguments = [_arguments(rows, 5) for rows in (1, 2, 3, 4)]
    wanted = [net(*each) for each in arguments]
    failed: list[BaseException] = []

    def calls(offset: int) -> None:
        try:
            for number in range(200):
                index = (number + offset) % len(arguments)
                np.testing.assert_allclose(net(*arguments[index]), wanted[index], rtol=1e-5, atol=1e-6)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=calls, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _variants(net).wait()
    calls(0)
    assert not failed and _variants(net).ready


def test_timing_tells() -> None:
    with timing() as times:
        net = _compiled("def @main(%x: Tensor[(?, 2), float32]) { exp(%x) }")
        _call_often(net, np.zeros((3, 2), "float32"))
    assert "compile for x=3,2, beside" in times.report()
    assert "load code for sizes" in times.report()


BRANCHES = """def @main(%x: Tensor[(?, ?), float32], %c: bool) {
  let %y = nn.relu(%x);
  if (%c) { sum(squeeze(%y, axis=[0])) } else { max(squeeze(%y, axis=[1])) }
}"""


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_that_the_sizes_do_not_fit(taken: bool) -> None:
    net = _compiled(BRANCHES)
    x = np.arange(3, dtype=np.float32).reshape((1, 3) if taken else (3, 1))
    assert _call_often(net, x, taken) == (3 if taken else 2)
    assert list(_variants(net).ready)
    assert net(x, taken) == (3 if taken else 2)
    # The open code stops in the other branch, too.
    for program in (net, _compiled(BRANCHES, specialize=False), mirstack.compile(mirstack.parse(BRANCHES), "interp")):
        with pytest.raises(mirstack.MirError, match=r"elements|must be 1"):
            program(x, not taken)


def test_calls_of_the_open_code_are_direct_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    net = _compiled("def @main(%x: Tensor[(?), float32]) { exp(%x) }")
    monkeypatch.setattr(specialize, "WORTH_CALLS", 1000)
    x = np.zeros(2, "float32")
    for _ in range(3):
        net(x)
    monkeypatch.setattr(net, "_careful_call", lambda _: pytest.fail("not direct"))  # pyright: ignore[reportUnknownLambdaType]
    assert np.array_equal(net(x), np.ones(2, "float32"))
    assert _variants(net)._met[((2,),)][0] == 4
