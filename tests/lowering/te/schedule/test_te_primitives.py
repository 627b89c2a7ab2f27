"""What each primitive of a TE schedule does to the loops, and what it is refused for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from mirstack import te
from mirstack.dialects.schedule.signature_table import te_signatures
from mirstack.passes.schedule.engine.errors import ScheduleError
from mirstack.support.diagnostics import MirError
from refused_primitives import REFUSED
from te_schedules import chain, reduction


def names(stage: te.Stage) -> list[str]:
    """The loops of a stage."""
    return [leaf.name for leaf in stage.leaf_iter_vars]


def test_split_fuse_reorder_tile():
    s, _, B, C = chain()
    io, ii = s[C].split(C.op.axis[0], factor=4)
    assert names(s[C]) == ["i.outer", "i.inner", "j"]
    s[C].reorder(C.op.axis[1], io)
    assert names(s[C]) == ["j", "i.inner", "i.outer"]
    s[C].fuse(ii, io)
    assert names(s[C]) == ["j", "i.inner.i.outer.fused"]
    s[B].tile(B.op.axis[0], B.op.axis[1], 4, 8)
    assert names(s[B]) == ["i.outer", "j.outer", "i.inner", "j.inner"]


def test_fuse_of_nothing_and_of_a_list():
    A = te.placeholder((), name="A")
    B = te.compute((), lambda: A() + 1.0, name="B")
    s = te.create_schedule(B.op)
    assert s[B].fuse().name == "singleton"
    s, _, _, C = chain()
    assert s[C].fuse(C.op.axis).name == "i.j.fused"


def test_stages_keep_their_tensors_through_rewriting():
    s, A, B, C = chain()
    cached = s.cache_read(A, "local", [B])
    written = s.cache_write(C, "global")
    assert [stage.op.name for stage in s.stages] == ["A", "A.local", "B", "C.global", "C"]
    assert s[cached].scope == "local"
    assert s[written].op.name == "C.global"
    assert s[C].is_output
    assert repr(s[C]) == "stage(C)"


def test_rfactor_makes_the_parts_a_stage():
    s, _, B = reduction()
    _, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    parts = s.rfactor(B, ki, -1)
    assert parts.shape == (8, 16)
    assert [a.name for a in s[B].op.reduce_axis] == ["k.inner.v"]
    assert names(s[parts]) == ["i", "k.inner", "k.outer"]


def test_a_group_has_no_operation():
    s, A, B, _ = chain()
    with pytest.raises(MirError, match="a group of stages has no operation of its own"):
        _ = s.create_group(outputs=B, inputs=A).op


def test_every_primitive_has_a_doc():
    owners = {"stage": te.Stage, "schedule": te.Schedule}
    assert all(getattr(owners[s.owner], s.name).__doc__ for s in te_signatures().values())


@pytest.mark.parametrize(("build", "message", "notes"), REFUSED)
def test_refused(build: Callable[[], None], message: str, notes: tuple[str, ...]):
    with pytest.raises(MirError, match=re.escape(message)) as refusal:
        build()
    # The line that asked for it, and what to do instead.
    text = str(refusal.value)
    assert "refused_primitives.py:" in text.splitlines()[0]
    for note in notes:
        assert note in text


def test_a_refused_primitive_leaves_the_schedule_as_it_was():
    s, _, _, C = chain()
    with pytest.raises(ScheduleError):
        s[C].tile(C.op.axis[0], C.op.axis[1], 4, 0)
    assert names(s[C]) == ["i", "j"]
    assert not s.as_op([]).steps


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda s, B, C: s[B].compute_at(C, C.op.axis[0]), "'parent' of compute_at is a stage"),
        (lambda s, B, C: s[B].split("i", 4), "'parent' of split is an axis"),
        (lambda s, B, C: s[B].set_scope(4), "'scope' of set_scope is a string, not the number 4"),
        (lambda s, B, C: s[B].storage_align(B.op.axis[0], 1.5, 0), "'factor' of storage_align is an integer"),
        (lambda s, B, C: s[B].pragma(B.op.axis[0], "unroll", []), "'pragma_value' of pragma is a number or a string"),
        (lambda s, B, C: s[B].tensorize(4, 4), "var of tensorize is an axis"),
        (lambda s, B, C: s[4], "a stage is found by its tensor or operation"),
        (lambda s, B, C: s.create_group([B], [4]), "'inputs' of create_group is a tensor"),
        (lambda s, B, C: te.create_schedule(4), "a schedule is made for operations"),
    ],
)
def test_arguments_of_wrong_kinds(build: Callable[..., Any], message: str):
    s, _, B, C = chain()
    with pytest.raises(TypeError, match=re.escape(message)):
        build(s, B, C)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("threadIdx.w",), "there is no thread 'threadIdx.w'"),
        (((0, 4), 4), "the number 4 is not a thread"),
        (
            ((0, 1, 2), "threadIdx.x"),
            "the range of a thread_axis is a number of threads or a pair: te.thread_axis((0, 32), …)",
        ),
    ],
)
def test_threads(args: tuple[Any, ...], message: str):
    with pytest.raises(MirError, match=re.escape(message)):
        te.thread_axis(*args)
    assert te.thread_axis(8, "threadIdx.x").dom is not None
