"""What threads of one launch exchange: they run one after the other, so programs that count on it do not run at all."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.parser import print_mir
from mirstack.passes.tir.threads.thread_memory import check_exchanges
from mirstack.support.diagnostics import MirError

HEAD = """@T.prim_func
def main(X: T.Buffer((8,), "int32"), Y: T.Buffer((8,), "int32")):
"""
BLOCKS = (
    HEAD
    + """    s = T.alloc_buffer((8,), "int32", scope="SCOPE")
    for i in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("s"):
            vi = T.axis.spatial(8, i)
            s[vi] = X[vi] * 3
        with T.block("y"):
            vi = T.axis.spatial(8, i)
            Y[vi] = s[7 - vi]
"""
)
LAUNCHED = (
    HEAD
    + """    tx = T.launch_thread("threadIdx.x", 8)
    s = T.allocate([8], "int32", "shared")
    s_1 = T.Buffer((8,), "int32", data=s, scope="shared")
    s_1[tx] = X[tx] * 3
    Y[tx] = s_1[7 - tx]
"""
)
IN_PARTS = (
    HEAD
    + """    s = T.alloc_buffer((8,), "int32", scope="shared")
    for i in T.thread_binding(4, thread="threadIdx.x"):
        for j in range(2):
            s[i * 2 + j] = X[i * 2 + j]
        for j in range(2):
            Y[i * 2 + j] = 0
            for k in range(8):
                Y[i * 2 + j] = Y[i * 2 + j] + s[k]
"""
)
PARAMETER = (
    HEAD
    + """    for i in T.thread_binding(8, thread="threadIdx.x"):
        X[i] = 3
        Y[i] = X[7 - i]
"""
)
FIRST = "loop 'i' cannot be bound to threadIdx.x: iterations 0 and 7 store and read the same element of 's'"
NOTE = (
    "threads run one after the other on a CPU and in the interpreter, and do not wait for each other: give each part a loop of threads"
    " of its own, or compute in each thread all that it reads"
)


@pytest.mark.parametrize("target", ("cpu", "interp"))
@pytest.mark.parametrize(
    ("text", "message"),
    (
        (BLOCKS.replace("SCOPE", "shared"), "iterations 0 and 7 store and read the same element of 's'"),
        (BLOCKS.replace("SCOPE", "global"), "iterations 0 and 7 store and read the same element of 's'"),
        (LAUNCHED, "iterations 0 and 7 store and read the same element of 's_1'"),
        (IN_PARTS, "it is not proven that its iterations touch different elements of 's'"),
        (PARAMETER, "iterations 0 and 7 store and read the same element of 'X'"),
    ),
)
def test_exchanges_are_refused(text: str, message: str, target: Any) -> None:
    """Such a program is still read and printed."""
    module = mirstack.parse(text)
    assert "thread" in print_mir(module)
    with pytest.raises(MirError) as caught:
        mirstack.compile(module, target)
    assert "' cannot be bound to threadIdx.x: " + message in str(caught.value)
    assert NOTE in str(caught.value)


@pytest.mark.parametrize(
    "body",
    (
        # Each thread reads what it stores itself.
        '    s = T.alloc_buffer((8,), "int32", scope="shared")\n'
        '    for i in T.thread_binding(8, thread="threadIdx.x"):\n'
        "        s[i] = X[i]\n        Y[i] = s[i] * 2\n",
        # Two launches.
        '    s = T.alloc_buffer((8,), "int32", scope="shared")\n'
        '    for i in T.thread_binding(8, thread="threadIdx.x"):\n        s[7 - i] = X[7 - i]\n'
        '    for i in T.thread_binding(8, thread="threadIdx.x"):\n        Y[i] = s[i] * 2\n',
        # Each thread computes all that it reads.
        '    for i in T.thread_binding(8, thread="threadIdx.x"):\n'
        '        with T.block("r"):\n'
        '            s = T.alloc_buffer((8,), "int32", scope="shared")\n'
        "            for k in range(8):\n                s[k] = X[k]\n"
        "            Y[i] = s[i] * 2\n",
        # Each thread stores three elements, of which it reads the last: rows of 4, as transform_layout makes them.
        '    s = T.alloc_buffer((3, 4), "int32", scope="shared")\n'
        '    for i in T.thread_binding(8, thread="threadIdx.x"):\n'
        "        for k in range(3):\n            s[(i + k) // 4, (i + k) % 4] = X[i]\n"
        "        Y[i] = s[(i + 2) // 4, (i + 2) % 4] * 2\n",
        # Each thread stores from the least to the greatest row that it reads, and more.
        '    s = T.alloc_buffer((8,), "int32", scope="shared")\n'
        '    for i in T.thread_binding(8, thread="threadIdx.x"):\n        for j in range(4):\n'
        "            for k in range(8):\n                if T.min(i, (i + j) % 8) + k < 8:\n"
        "                    s[T.min(i, (i + j) % 8) + k] = X[T.min(i, (i + j) % 8) + k]\n"
        "            Y[i] = s[i] * 2 + s[(i + j) % 8] * 0\n",
        # A sum over threads, at a place that is loaded for each of its terms.
        '    s = T.alloc_buffer((1,), "int32", scope="shared")\n'
        '    p = T.alloc_buffer((1,), "int32")\n'
        "    s[0] = 0\n    p[0] = 0\n"
        '    for i in T.thread_binding(8, thread="threadIdx.x"):\n        s[p[0]] = s[p[0]] + X[i]\n'
        "    for i in range(8):\n        Y[i] = X[i] * 2 + s[0] * 0\n",
        # A sum over threads.
        '    s = T.alloc_buffer((1,), "int32", scope="shared")\n'
        "    s[0] = 0\n"
        '    for i in T.thread_binding(8, thread="threadIdx.x"):\n        s[0] = s[0] + X[i]\n'
        "    for i in range(8):\n        Y[i] = X[i] * 2 + s[0] * 0\n",
    ),
)
def test_threads_on_their_own_run(body: str) -> None:
    module = mirstack.parse(HEAD + body)
    x = np.arange(8, dtype=np.int32)
    for target in ("cpu", "interp"):
        y = np.zeros(8, np.int32)
        run: Any = mirstack.compile(module, target)  # pyright: ignore[reportArgumentType]
        run(x, y)
        np.testing.assert_array_equal(y, x * 2)


def test_the_check_changes_nothing() -> None:
    """It looks at loops in a copy where threads are launched without."""
    module = mirstack.parse(LAUNCHED.replace("7 - tx", "tx"))
    text = print_mir(module)
    check_exchanges(next(iter(module.body.block.ops)))  # pyright: ignore[reportArgumentType]
    assert print_mir(module) == text


def test_the_whole_message() -> None:
    with pytest.raises(MirError) as caught:
        mirstack.compile(mirstack.parse(BLOCKS.replace("SCOPE", "shared")))
    assert caught.value.diagnostics[0].message == FIRST
