"""allocate-in-output: softmax's exponentials lie in its output, whatever the rows are like and however many threads there are."""

import mirstack
import numpy as np
import pytest
from mirstack.dialects import tir
from mirstack.support.walk import walk_ops


@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64"])
@pytest.mark.parametrize(("shape", "axis"), [((3, 5, 33), -1), ((2, 64, 64), 1), ((1, 5000), -1)])
def test_softmax(cpu, shape, axis):
    text = f"def @main(%x: Tensor[{shape}, float32]) {{ nn.softmax(%x, axis={axis}) }}"
    buffers = []

    def observe(step, module):
        if step.name == "allocate-in-output":
            buffers.extend(op for op in walk_ops(module) if isinstance(op, tir.AllocBufferOp))
            assert not any(op.var_name.data.rpartition("_")[2] == "exp" for op in buffers)

    run = mirstack.compile(mirstack.parse(text), cpu=cpu, threads=2, observers=(observe,))
    assert buffers
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32) * 10
    powers = np.exp(x - x.max(axis, keepdims=True), dtype=np.float64)
    np.testing.assert_allclose(run(x), powers / powers.sum(axis, keepdims=True), rtol=1e-5, atol=1e-9)
