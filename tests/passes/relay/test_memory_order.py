"""Passes that compute constants give the very bits that the interpreter gives: numpy's sums follow the order in memory."""

from __future__ import annotations

import numpy as np
import pytest
from mirstack.driver.pipeline import read_pipeline
from mirstack.fuzz.relay.rounding import run
from mirstack.parser import parse_mir
from mirstack.passes.registry import pass_factories
from mirstack.support.walk import walk_ops
from xdsl.context import Context

MOVED = """
def @main() {
  %0 = sin(arange(0f, 3840f, 1f, dtype="float32"));
  sum(layout_transform(reshape(%0, newshape=[1, 4, 24, 40]), src_layout="NCHW", dst_layout="NHWC"))
}
"""


@pytest.mark.parametrize("pipeline", ["fold-constant", "partial-evaluate"])
def test_sums_of_what_was_moved(pipeline: str) -> None:
    module = parse_mir(MOVED)
    wanted = run(module, [])
    for module_pass in read_pipeline(pipeline, pass_factories()):
        module_pass.apply(Context(), module)
    assert not any(op.name == "relay.sum" for op in walk_ops(module))
    np.testing.assert_array_equal(run(module, []), wanted)
