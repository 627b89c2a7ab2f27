"""Spans of time: what is measured, when somebody listens."""

from __future__ import annotations

import threading
import time

import mirstack
import numpy as np
import pytest
from mirstack.support.stopwatch import Span, current_span, in_background, process_start, timed, timing

MODEL = """def @main(%x: Tensor[(4, 8), float32]) { nn.softmax(nn.relu(%x)) }"""


def test_spans_of_one_name_are_one_line() -> None:
    with timing() as times:
        for _ in range(3):
            with timed("outer"):
                with timed("inner"):
                    time.sleep(0.002)
                with timed("other"):
                    pass
    outer, inner = times.find("outer"), times.find("outer", "inner")
    assert outer is not None and inner is not None
    assert outer.count == inner.count == 3
    assert 0.006 <= inner.seconds <= outer.seconds
    assert [(depth, span.name) for depth, span in times.walk()] == [(0, ""), (1, "outer"), (2, "inner"), (2, "other")]
    assert times.find("outer", "absent") is None


def test_nobody_listens() -> None:
    with timed("alone"):
        assert current_span() is None


def test_a_failing_block_is_counted() -> None:
    with timing() as times, pytest.raises(ValueError), timed("fails"):
        raise ValueError
    assert times.children["fails"].count == 1


def test_another_thread_runs_beside() -> None:
    with timing() as times, timed("compile"):
        parent = current_span()

        def work() -> None:
            with in_background(parent, "beside"), timed("emit"):
                time.sleep(0.002)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        with in_background(None, "nothing"):
            pass
    beside = times.find("compile", "beside")
    assert beside is not None and beside.background and beside.seconds >= 0.002 and beside.count == 1


def test_report() -> None:
    root = Span("")
    root.child("compile").seconds, root.child("compile").count = 0.75, 1
    root.child("compile").child("parse").seconds = 0.25
    root.child("run").seconds, root.child("run").count = 0.25, 2
    lines = root.report().splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["compile", "750.0", "1", "75.0%"],
        ["parse", "250.0", "0", "25.0%"],
        ["run", "250.0", "2", "25.0%"],
        ["total", "1000.0"],
    ]


def test_what_a_compilation_consists_of() -> None:
    with mirstack.timing() as times:
        function = mirstack.compile(mirstack.parse(MODEL))
    function(np.ones((4, 8), "float32"))
    for path in (
        ("graph", "fuse-ops"),
        ("kernels", "default-schedule"),
        ("kernels", "translate"),
        ("program", "lower-relay-to-llvm"),
        ("LLVM, beside", "optimize"),
        ("LLVM, beside", "generate code"),
        ("link",),
    ):
        span = times.find(*path)
        assert span is not None and span.count >= 1 and span.seconds > 0, path


def test_process_start() -> None:
    assert time.time() - 7200 * 24 < process_start() <= time.time()
