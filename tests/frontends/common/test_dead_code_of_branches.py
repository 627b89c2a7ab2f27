"""A branch that ends does not erase what is around it: an importer may use that later."""

from __future__ import annotations

from mirstack.frontends.common.graph_builder import GraphBuilder


def test_values_around_a_branch_stay() -> None:
    b = GraphBuilder()
    x = b.parameter("x", "float32", [3])
    outer = b.call("nn.relu", x)
    inner = GraphBuilder(b)
    inner.call("exp", outer)  # Nothing uses it.
    inner.finish(inner.call("negative", x))
    function = b.finish_function("main", b.call("tanh", outer))
    assert [op.name for op in function.body.block.ops] == ["relay.nn.relu", "relay.tanh", "relay.return"]
