"""What the tests of TVMScript share."""

from __future__ import annotations

from io import StringIO

from mirstack.dialects.array import MIRSTACK
from mirstack.dialects.tir import TIR
from mirstack.parser import parse_mir, print_mir
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.printer import Printer


def mlir(module: ModuleOp) -> str:
    """The module in MLIR's generic form."""
    out = StringIO()
    Printer(stream=out).print_op(module)
    return out.getvalue()


def from_mlir(text: str) -> ModuleOp:
    """The module of a text in MLIR's form."""
    context = Context()
    for dialect in (Builtin, TIR, MIRSTACK):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


def check_round_trip(module: ModuleOp, *, generic: bool = True) -> str:
    """Asserts that the module comes back from its own text, in both forms, and that printing is a fixed point. Its text."""
    text = print_mir(module)
    again = parse_mir(text, "printed.mir")
    assert module.is_structurally_equivalent(again), text
    assert print_mir(again) == text
    if not generic:
        return text
    form = mlir(module)
    # Name hints are no part of the program: the MLIR forms are compared without them.
    assert _unnamed(form) == _unnamed(mlir(again))
    back = from_mlir(form)
    back.verify()
    assert module.is_structurally_equivalent(back)
    assert mlir(back) == form
    assert print_mir(back) == text
    return text


def _unnamed(text: str) -> str:
    import re

    numbers: dict[str, str] = {}
    return re.sub(r"%[\w.$-]+", lambda m: numbers.setdefault(m[0], f"%{len(numbers)}"), text)


def function(body: str, parameters: str = 'A: T.Buffer((8, 8), "float32"), n: T.int32') -> str:
    """A prim_func with these statements, indented by four."""
    lines = "\n".join("    " + line if line else "" for line in body.strip("\n").split("\n"))
    return f"@T.prim_func\ndef f({parameters}):\n{lines}\n"


def body_of(text: str) -> str:
    """The statements of the one function of a printed text, without their indentation."""
    lines = text.strip("\n").split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("def "))
    return "\n".join(line[4:] for line in lines[start + 1 :])


def reprint(body: str, parameters: str = 'A: T.Buffer((8, 8), "float32"), n: T.int32') -> str:
    """The statements as they are printed, after checking the round trip."""
    module = parse_mir(function(body, parameters), "test.mir")
    module.verify()
    return body_of(check_round_trip(module))


def ops(module: ModuleOp, kind: type[Operation]) -> list[Operation]:
    """All ops of a kind, in order."""
    return [op for op in module.walk() if isinstance(op, kind)]
