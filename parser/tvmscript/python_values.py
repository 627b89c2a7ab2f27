"""Values of Python in scripts: captured expressions of `tir`, and functions that a script calls.

    n = te.var("n")                        A = T.match_buffer(a, (n, n + 1))
    def next(i): return i + 1              A[next(vi)] = 0

Such a function gets variables and buffers as nodes of `tir` and returns an expression, which becomes ops where it is called.
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, SSAValue

from ...dialects.tir.expr import VarOp
from ...dialects.tir.node.buffer import Buffer
from ...dialects.tir.node.emit_expr import ExprEmitter, variable_type
from ...dialects.tir.node.expr import Const as Immediate
from ...dialects.tir.node.expr import Expr as Node
from ...dialects.tir.node.expr import Var, const, describe, fail, location_scope
from ...dialects.tir.operators import Const, Value
from ...dialects.tir.types import BufferType, dtype_to_type, type_to_dtype
from ...support.diagnostics import MirError
from ..python.literals import is_string, string
from ..python.tree import Call, Captured, Expr, Keyword, Mapping, Sequence, Token
from .closure_variables import literal
from .expressions import expr
from .reader import Reader, hint
from .registry import reads_expression


class _Emitter(ExprEmitter):
    """Emits nodes where the reader is; free variables are declared at the beginning of the function."""

    def __init__(self, reader: Reader):
        super().__init__(Block())
        self.reader = reader
        # The buffers of the script that a function of Python got.
        self.shown_buffers: dict[Buffer, SSAValue] = {}

    def undefined(self, variable: Var) -> SSAValue:
        """Returns the value of a captured variable, declared once a function."""
        op = VarOp(self.reader.fresh(variable.name), variable_type(variable), size_var=variable.is_size)
        op.location = self.reader.location
        op.result.name_hint = hint(variable.name)
        self.reader.prologue.append(op)
        self.define(variable, op.result)
        return op.result

    def buffer(self, buffer: Buffer) -> SSAValue:
        """Returns the value of a buffer of the script. Raises MirError for one of the Python around."""
        found = self.buffers.get(id(buffer))
        if found is None:
            raise fail(f"the buffer '{buffer.name}' of the Python around is not declared in this function")
        return found

    def emitted(self, node: Node) -> SSAValue:
        """Returns the value of an expression, after its ops are among the reader's."""
        with location_scope(self.reader.location):
            value = self.expr(node)
        made = list(self.block.ops)
        for op in made:
            op.detach()
        self.reader.ops += made
        return value


def _emitter(reader: Reader) -> _Emitter:
    if reader.emitter is None:
        reader.emitter = _Emitter(reader)
    return cast("_Emitter", reader.emitter)


@reads_expression(Captured)
def read_captured(reader: Reader, node: Captured) -> Value:
    """Reads what a name of the Python around is. Raises MirError where that is not a value of a script."""
    reader.location = reader.at(node)
    return value_of(reader, node, node.value, f"'{node.token}' of the Python around")


def value_of(reader: Reader, node: Expr, found: object, subject: str) -> Value:
    """Returns a value of Python as one of the script."""
    if isinstance(found, Immediate):
        return Const(found.value, dtype_to_type(found.dtype))
    if isinstance(found, Node | Buffer):
        emitter = _emitter(reader)
        try:
            return emitter.buffer(found) if isinstance(found, Buffer) else emitter.emitted(found)
        except MirError as error:
            first = error.diagnostics[0]
            reader.fail(node, first.message, *(note.message for note in first.notes))
    written = None if found is None else literal(found, reader_start(node))
    if written is not None and not isinstance(written, Sequence | Mapping) and not is_string(written):
        return expr(reader, written)
    reader.fail(
        node,
        f"{subject} is {describe(found)}, which is not a value here",
        "a script takes numbers, strings, dtypes, lists and dictionaries of such, and expressions of tir",
    )


def reader_start(node: Expr) -> int:
    """Returns the offset of a captured name or of a call's function."""
    token = node.function if isinstance(node, Call) else node
    token = token.token if isinstance(token, Captured) else token
    return token.start if isinstance(token, Token) else -1


def python_call(reader: Reader, node: Call) -> Value:
    """Reads a call of a function of Python by its result."""
    found = called_in_python(reader, node)
    assert isinstance(node.function, Captured)
    return value_of(reader, node, found, f"what '{node.function.token}' returns")


def called_in_python(reader: Reader, node: Call) -> object:
    """Calls a function of Python on what its arguments are as nodes. Raises MirError where it fails."""
    function = node.function
    assert isinstance(function, Captured)
    arguments = [_argument(reader, argument) for argument in node.arguments]
    keywords = {str(keyword.name): _argument(reader, keyword.value) for keyword in node.keywords}
    reader.location = reader.at(node)
    try:
        with location_scope(reader.location):
            return cast("Any", function.value)(*arguments, **keywords)
    except MirError as error:
        first = error.diagnostics[0]
        reader.fail(node, f"'{function.token}(…)': {first.message}", *(note.message for note in first.notes))
    except Exception as error:
        reader.fail(node, f"'{function.token}(…)' cannot be evaluated in Python: {type(error).__name__}: {error}")


def _argument(reader: Reader, node: Expr | Keyword) -> object:
    """Returns an argument as Python has it: a node of `tir` for a value of the script."""
    match node:
        case Captured():
            return node.value
        case Token() if node in ("True", "False", "None"):
            return {"True": True, "False": False, "None": None}[node]
        case Sequence():
            items = [_argument(reader, item) for item in node.items]
            return items if node.is_list else tuple(items)
        case Mapping():
            return {_argument(reader, key): _argument(reader, value) for key, value in node.pairs}
        case _ if not isinstance(node, Keyword) and is_string(node):
            return string(node, reader.fail)
        case _:
            assert not isinstance(node, Keyword)
            return _node_of(reader, expr(reader, node), node)


def _node_of(reader: Reader, value: Value, node: Expr) -> object:
    """Returns a node that is emitted as the value."""
    if isinstance(value, Const):
        is_literal = type(node) is Token and node.type == "NUMBER"
        return value.value if is_literal else const(value.value, type_to_dtype(value.type))
    emitter, name = _emitter(reader), value.name_hint or "v"
    if isinstance(value.type, BufferType):
        known = next((b for b, held in emitter.shown_buffers.items() if held is value), None)
        if known is not None:
            return known
        dims = [
            const(dim.value.data, type_to_dtype(dim.type)) if isinstance(dim, IntegerAttr) else Var(f"{name}_{number}")
            for number, dim in enumerate(value.type.shape.data)
        ]
        buffer = Buffer(str(node), tuple(dims), type_to_dtype(value.type.dtype), scope=value.type.scope.data)
        emitter.buffers[id(buffer)] = value
        emitter.shown_buffers[buffer] = value
        return buffer
    variable = Var(name, type_to_dtype(value.type))
    emitter.define(variable, value)
    return variable
