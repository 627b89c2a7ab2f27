"""Relay calls a TE function whose schedule leaves the strides of tensors of open size as symbols."""

import mirstack
import numpy as np

PROGRAM = """@te.func
def largest():
    n, m = te.var("n"), te.var("m")
    x = te.placeholder((n, m, 3), name="x")
    k = te.reduce_axis((0, 3), name="k")
    y = te.compute((n, m), lambda i, j: te.max(x[i, j, k], axis=k), name="y")
    return [x, y]

@te.schedule(largest)
def rows(s):
    o, i = s[y].split(y.op.axis[0], factor=4)
    s[y].parallel(o)

def @main(%x: Tensor[(?, 5, 3), float32]) { negative(call_tir(@largest, %x)) }
"""


def test_strides_of_open_sizes_are_those_of_compact_tensors() -> None:
    x = np.random.default_rng(1).normal(size=(6, 5, 3)).astype("float32")
    for target in ("cpu", "interp"):
        result = mirstack.compile(mirstack.parse(PROGRAM), target=target, threads=1)(x)
        np.testing.assert_array_equal(np.asarray(result), -x.max(axis=2))
