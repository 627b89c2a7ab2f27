"""Objects made in background threads: all of them right, whatever the order; errors come where results are asked for."""

from __future__ import annotations

import ctypes
from concurrent.futures import CancelledError, Future

import pytest
from mirstack.lowering.llvm.jit.load import HOST, emit_object, link_objects
from mirstack.lowering.llvm.jit.object_pool import ObjectPool
from mirstack.support.diagnostics import MirError


def text(number: int) -> str:
    """A loop with enough in it that optimizing takes a while."""
    steps = "\n".join(f"  %a{k + 1} = add i64 %a{k}, {number + k}" for k in range(200))
    return f"""define i64 @f{number}(ptr %p, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %s = phi i64 [ 0, %entry ], [ %a201, %loop ]
  %q = getelementptr i64, ptr %p, i64 %i
  %x = load i64, ptr %q
  %a0 = add i64 %x, %i
{steps}
  %a201 = add i64 %a200, %s
  %j = add i64 %i, 1
  %on = icmp ult i64 %j, %n
  br i1 %on, label %loop, label %done
done:
  ret i64 %a201
}}"""


def test_threads_give_what_one_gives() -> None:
    with ObjectPool(HOST, 4) as pool:
        futures = [pool.submit(text(number)) for number in range(24)]
        objects = [future.result() for future in futures]
    assert objects[:3] == [emit_object(text(number)) for number in range(3)]
    code = link_objects(objects)
    data = (ctypes.c_int64 * 5)(*range(5))
    for number in range(24):
        function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(code.address(f"f{number}"))
        assert function(ctypes.addressof(data), 5) == sum(2 * i + sum(number + k for k in range(200)) for i in range(5))


def test_errors_are_raised_by_the_result() -> None:
    with ObjectPool(HOST, 2) as pool:
        good, bad = pool.submit(text(1)), pool.submit("define i32 @f() { ret i64 0 }")
        assert good.result()[:4]
        with pytest.raises(MirError, match="LLVM refuses the module"):
            bad.result()


def test_what_has_not_begun_is_dropped() -> None:
    futures: list[Future[bytes]] = []
    with pytest.raises(ZeroDivisionError), ObjectPool(HOST, 1) as pool:
        futures += [pool.submit(text(number)) for number in range(40)]
        raise ZeroDivisionError
    ends: list[bool] = []
    for future in futures:
        try:
            ends.append(bool(future.result(timeout=0)))
        except CancelledError:
            ends.append(False)
    assert not all(ends)


def test_one_thread_is_left_to_who_submits_until_all_is_submitted() -> None:
    with ObjectPool(HOST, 2) as pool:
        futures = [pool.submit(text(number)) for number in range(12)]
        assert len(pool._threads) == 1
        pool.hurry()
        assert len(pool._threads) == 2
        assert all(future.result() for future in futures)


def test_the_longest_text_is_first() -> None:
    order: list[int] = []
    with ObjectPool(HOST, 1) as pool:
        pool._most = 0
        for count in (1, 6, 3):
            future = pool.submit("\n".join(text(100 * count + k) for k in range(count)))
            future.add_done_callback(lambda _, count=count: order.append(count))
        pool.hurry()
    assert order == [6, 3, 1]


def test_an_empty_pool_starts_nothing() -> None:
    with ObjectPool(HOST, 4):
        pass
