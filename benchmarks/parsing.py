"""Parsing Relay text against building the same ops in Python, a 20,000-op chain."""

from __future__ import annotations

import mirstack
from mirstack.dialects import relay
from mirstack.support.deep_stack import in_deep_stack
from xdsl.dialects.builtin import ModuleOp, TensorType, f32

from .timing import report, side_by_side

COUNT = 20_000


def text() -> str:
    """Returns a chain of additions in Relay text."""
    lines = [f"  %{k} = add(%{k - 1}, %x);" if k else "  %0 = add(%x, %x);" for k in range(COUNT)]
    body = "\n".join(lines)
    return f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) {{\n{body}\n  %{COUNT - 1}\n}}\n'


def build() -> ModuleOp:
    """Returns the same chain, op by op."""
    type = TensorType(f32, [4])
    function = relay.FuncOp("main", ["x"], [type], ret_type=type)
    operator = relay.get_operator("add")
    assert operator is not None
    add = relay.operator_class(operator)
    block = function.body.block
    value = x = function.params[0]
    for _ in range(COUNT):
        op = add([value, x], type=type)
        block.add_op(op)
        value = op.result
    block.add_op(relay.ReturnOp(value))
    return ModuleOp([function])


def main() -> None:
    source = text()
    candidates = {"parse and type": lambda: mirstack.parse(source), "build in Python": build}
    medians = in_deep_stack(lambda: side_by_side(candidates, rounds=3, warmup=1))
    report(medians)
    for name, seconds in medians.items():
        print(f"  {name}: {COUNT / seconds:,.0f} ops/s")


if __name__ == "__main__":
    main()
