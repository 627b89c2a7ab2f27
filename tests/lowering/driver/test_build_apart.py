"""Kernels that other processes compile: the same objects, the same errors."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import mirstack
import pytest
from mirstack.lowering.driver import workers
from mirstack.lowering.driver.build import Built, build
from mirstack.lowering.driver.cache.kernels import KernelCache
from mirstack.lowering.driver.lowered_unit import LoweredUnit
from mirstack.lowering.llvm.jit import load as jit
from mirstack.lowering.pipeline import Options
from mirstack.support.diagnostics import MirError, error_at
from mirstack.support.stopwatch import timing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")

SIZES = range(3, 9)
MODEL = f"""def @main({", ".join(f"%x{n}: Tensor[({n}, {n}), float32]" for n in SIZES)}) {{
  ({", ".join(f"nn.softmax(nn.dense(%x{n}, exp(%x{n})))" for n in SIZES)})
}}
"""


def in_worker() -> bool:
    return multiprocessing.current_process().name == "mirstack-worker"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Built]:
    """Compiles the model with so many workers; if there are any, they do all, as this process is in no hurry."""
    monkeypatch.setattr(workers, "can_fork", lambda: True)
    own_part = workers.Workers.own_part

    def compile(count: int) -> Built:
        monkeypatch.setenv("MIRSTACK_WORKERS", str(count))
        monkeypatch.setattr(workers.Workers, "own_part", own_part if count == 0 else _in_no_hurry)
        return build(mirstack.parse(MODEL, "m.mir"), Options(threads=1), kernels=KernelCache(None, b""))

    return compile


def _in_no_hurry(self: Any) -> Iterator[int]:
    with self._changed:
        assert self._changed.wait_for(lambda: not self._queue or len(self._crashed) == len(self._workers), 60)
    while (task := self._take(None)) is not None:
        yield task


def test_the_same_is_made(compiled: Callable[[int], Built]) -> None:
    with timing() as times:
        alone = compiled(0)
    assert times.find("kernels", "workers, beside") is None
    with timing() as times:
        apart = compiled(2)
    beside = times.find("kernels", "workers, beside")
    assert beside is not None and beside.count >= 2 * len(SIZES)
    own = times.find("kernels", "default-schedule")
    assert own is None
    assert apart.objects == alone.objects and apart.messages == alone.messages
    assert str(apart.module) == str(alone.module)


def test_an_error_is_that_of_the_first_kernel(
    compiled: Callable[[int], Built], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(unit: Any) -> Any:
        kernel = next(op for op in unit.module.ops if op.name == "llvm.func")
        raise error_at(kernel, f"{kernel.sym_name.data.split('.')[0]} is refused")

    monkeypatch.setattr(LoweredUnit, "of", refuse)
    texts: list[str] = []
    for count in (0, 2):
        with pytest.raises(MirError, match="is refused") as raised:
            compiled(count)
        texts.append(str(raised.value))
    assert texts[0] == texts[1]


def test_what_ends_llvm_is_an_error(compiled: Callable[[int], Built], monkeypatch: pytest.MonkeyPatch) -> None:
    emit = jit.emit_object

    def emit_or_die(text: str, target: jit.Target) -> bytes:
        if in_worker():
            faulthandler.disable()
            os.abort()
        return emit(text, target)

    monkeypatch.setattr(jit, "emit_object", emit_or_die)
    with pytest.raises(MirError) as raised:
        compiled(2)
    text = str(raised.value)
    assert "m.mir:2:" in text and "error: LLVM ended the process that compiled kernel '" in text
    assert (
        "note: this is a defect of LLVM or of what it was given, not of the program; opt_level=1 may avoid it" in text
    )


def test_remarks_are_heard(compiled: Callable[[int], Built]) -> None:
    from mirstack.passes.pass_info import explanation
    from mirstack.support.trace import listening

    with timing() as times, listening([explanation("default-schedule")], lambda remark: None):
        build(mirstack.parse(MODEL), Options(threads=1), kernels=KernelCache(None, b""))
    assert times.find("kernels", "workers, beside") is None
