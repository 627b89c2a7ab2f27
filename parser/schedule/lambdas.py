"""Lambdas of schedules (index maps, padding values): between text and regions of tir expressions."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Region, SSAValue

from ...dialects.schedule import Lambda, YieldOp
from ...dialects.tir.types import I32, I64
from ...support.diagnostics import error_at
from ..python.tree import Binary, Call, Expr, Index, Sequence, Token, Unary
from ..python.tree import Lambda as LambdaTree
from ..tvmscript.expressions import scalar
from ..tvmscript.inlined_values import Plan
from ..tvmscript.names import Names
from ..tvmscript.print_expressions import ExpressionPrinter
from ..tvmscript.reader import Reader

SEPARATOR = "IndexMap.AXIS_SEPARATOR"
_SEPARATORS = ("IndexMap.AXIS_SEPARATOR", "te.AXIS_SEPARATOR", "T.AXIS_SEPARATOR", "tir.IndexMap.AXIS_SEPARATOR")
# A lambda whose expressions share values would print each of them again and again.
_MOST_OPS = 10_000


def read_lambda(reader: Reader, node: LambdaTree) -> Region:
    """Reads `lambda i, j: [i // 4, j]` as a region.

    The parameters are int64 when the body has int64 constants, otherwise int32.
    """
    reader.location = reader.at(node)
    type_ = I64 if any(token == "T.int64" for token in _tokens(node.body)) else I32
    block = Block(arg_types=[type_] * len(node.parameters))
    with reader.inside(block):
        for argument, name in zip(block.args, node.parameters, strict=True):
            if str(name) in reader.names:
                reader.fail(name, f"two parameters are called '{name}'")
            argument.name_hint = str(name)
            argument.location = reader.at(name)
            reader.define(str(name), argument)
        body = node.body
        items = body.items if isinstance(body, Sequence) else [body]
        values: list[SSAValue] = []
        separators: list[int] = []
        for item in items:
            if isinstance(item, Token) and item in _SEPARATORS:
                separators.append(len(values))
            else:
                values.append(scalar(reader, item))
        made = YieldOp(values, single=not isinstance(body, Sequence), separators=separators)
        made.location = reader.at(node)
        reader.ops.append(made)
    return Region(block)


def _tokens(node: Expr) -> Iterator[Token]:
    """Yields the tokens of an expression."""
    pending: list[Expr] = [node]
    while pending:
        match pending.pop():
            case Token() as token:
                yield token
            case Binary() as op:
                pending += [op.left, op.right]
            case Unary() as op:
                pending.append(op.operand)
            case Call() as call:
                pending += [call.function, *call.arguments, *(k.value for k in call.keywords)]
            case Sequence() as items:
                pending += items.items
            case Index() as index:
                pending += [index.base, *index.items]
            case _:
                pass


def lambda_text(value: Lambda, tuples: bool = False) -> str:
    """Returns a lambda as text, values as a list or tuple. Raises MirError for one that cannot be written."""
    block = value.region.block
    last = block.last_op
    assert isinstance(last, YieldOp)
    names = Names()
    parameters = [names.define(arg, name) for arg, name in zip(block.args, value.names, strict=True)]
    _check_size(block)
    plan = Plan(block)
    # Values used twice are written twice: a lambda has no statements that could name them.
    plan.inline.update(block.ops)
    printer = ExpressionPrinter(names, plan, {})
    values = [printer.text(value) for value in last.values]
    for place in reversed([p.value.data for p in last.separators]):
        values.insert(place, SEPARATOR)
    head = f"lambda {', '.join(parameters)}" if parameters else "lambda"
    if last.single.value.data:
        return f"{head}: {values[0]}"
    return f"{head}: ({', '.join(values)},)" if tuples else f"{head}: [{', '.join(values)}]"


def _check_size(block: Block) -> None:
    """Refuses what would print too long."""
    sizes: dict[SSAValue, int] = {}
    for op in block.ops:
        size = 1 + sum(sizes.get(operand, 1) for operand in op.operands)
        if size > _MOST_OPS:
            raise error_at(op, "this lambda is too long to be written", "print the module with '-t mlir'")
        sizes.update(dict.fromkeys(op.results, size))
