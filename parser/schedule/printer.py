"""Prints schedule scripts, a line for each call; unnamed results are in the calls that use them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from ...dialects.schedule import (
    Argument,
    ComputeOp,
    ItemOp,
    Lambda,
    ListType,
    PrimitiveOp,
    Ref,
    RuleOp,
    ScriptOp,
    SliceOp,
    Splat,
    result_name,
)
from ...dialects.schedule.types import BlockType, LoopType
from ...support.diagnostics import error_at
from ..tvmscript.names import Names
from ..tvmscript.print_expressions import quoted
from .lambdas import lambda_text

_TAB = "    "
_TIGHT = ("*", "//", "%")


def print_schedule(op: Operation) -> str:
    """Prints a script, or a rule: its pattern and conditions above the script."""
    if not isinstance(op, RuleOp):
        assert isinstance(op, ScriptOp)
        return print_script(op)
    from ..rules.printer import print_kernel_rule

    head = print_kernel_rule(op.pattern)
    return f"{'optional ' if op.optional is not None else ''}{head}\n{print_script(op.script)}"


def print_script(script: ScriptOp) -> str:
    """Prints a script: `@T.schedule(target) def name(sch): …`."""
    return marked_script(script)[0]


def marked_script(script: ScriptOp) -> tuple[str, dict[Operation, int]]:
    """Prints a script; returns also the line, from 0, of each call that is a statement."""
    target = "" if script.target is None else f"({script.target.root_reference.data})"
    printer = ScriptPrinter()
    lines = printer.lines(script)
    parameters = ["sch", *(printer.names.name(arg) for arg in script.body.block.args)]
    head = [f"@T.schedule{target}", f"def {script.sym_name.data}({', '.join(parameters)}):"]
    lines_of: dict[Operation, int] = {op: line + len(head) for op, line in printer.lines_of.items()}
    return "\n".join([*head, *(_TAB + line for line in lines)]), {script: 1, **lines_of}


class ScriptPrinter:
    """Writes the calls of one script; `tuples` writes index maps as TVM's traces have them, `(i, j,)`."""

    def __init__(self, tuples: bool = False) -> None:
        self.tuples = tuples
        self.names = Names()
        self.names.reserve("sch")
        # Calls read but not written yet, in order: each has one result, without a name, that is used once.
        self.pending: list[PrimitiveOp] = []
        self.text_of: dict[SSAValue, str] = {}
        self.out: list[str] = []
        # The line of each statement, from 0.
        self.lines_of: dict[Operation, int] = {}

    def lines(self, script: ScriptOp) -> list[str]:
        """Returns the statements of the body; `pass` where there is none."""
        for arg in script.body.block.args:
            self.names.define(arg, result_name(arg))
        for op in script.body.block.ops:
            match op:
                case PrimitiveOp():
                    self.primitive(op)
                case ItemOp() | SliceOp():
                    self.item(op)
                case ComputeOp():
                    self.settle(op)
                case _:
                    raise error_at(op, f"'{op.name}' has no text in a schedule", "print the module with '-t mlir'")
        self.flush()
        return self.out or ["pass"]

    def primitive(self, op: PrimitiveOp) -> None:
        """Prints a call as a statement, or keeps it for the call that uses it."""
        kept = len(op.outs) == 1 and not result_name(op.outs[0]) and _used_once_in_call(op.outs[0])
        self.settle(op, kept)
        if kept:
            self.pending.append(op)
        else:
            self.statement(op)

    def item(self, op: ItemOp | SliceOp) -> None:
        """Prints an item of a list: a statement if it has a name, otherwise the text for its use."""
        if op.result_name.data:
            self.settle(op)
            text = self.item_text(op)
            self.out.append(f"{self.names.define(op.result, op.result_name.data)} = {text}")

    def settle(self, user: Operation, kept: bool = False) -> None:
        """Takes the pending calls that stand inside `user`, and writes those that cannot wait any longer.

        Calls are made in the order of the text, so only the last pending ones can stand inside. What is before them waits
        on when `user` is `kept`, too.
        """
        wanted = [call for value in _in_order(user) if (call := _call_behind(value)) in self.pending]
        start = len(self.pending) - len(wanted)
        inside = self.pending[start:] == wanted
        if inside:
            del self.pending[start:]
        if not (kept and inside):
            self.flush()

    def flush(self) -> None:
        """Writes the pending calls as statements that name their results."""
        for op in self.pending:
            self.statement(op)
        self.pending.clear()

    def statement(self, op: PrimitiveOp) -> None:
        """Prints the statement `results = sch.primitive(arguments)`."""
        text = self.call_text(op)
        self.lines_of[op] = len(self.out)
        targets: list[str] = []
        element = op.SIGNATURE.element
        for result in op.outs:
            star = "*" if isinstance(result.type, ListType) and len(op.outs) > 1 else ""
            targets.append(star + self.names.define(result, result_name(result) or _generic_name(result)))
        if not targets:
            self.out.append(text)
            return
        alone = len(targets) == 1 and element is not None and not isinstance(op.outs[0].type, ListType)
        self.out.append(f"{', '.join(targets)}{',' if alone else ''} = {text}")

    def call_text(self, op: PrimitiveOp) -> str:
        """Returns the text of a call, `sch.primitive(arguments)`."""
        positional = op.positional.value.data
        variadic = op.SIGNATURE.variadic
        parts: list[str] = []
        for place, (name, value) in enumerate(op.bound.items()):
            if variadic is not None and name == variadic.name and isinstance(value, list):
                parts += map(self.text, value)
            else:
                text = self.text(value)
                if isinstance(value, list) and any(kind.word == "pair" for kind in op.SIGNATURE.by_name[name].kinds):
                    text = f"({text[1:-1]})"
                parts.append(text if place < positional else f"{name}={text}")
        return f"sch.{op.SIGNATURE.name}({', '.join(parts)})"

    def value_text(self, value: SSAValue) -> str:
        """Returns a handle's text: its name, or the call or item that returns it."""
        name = self.names.of.get(value)
        if name is not None:
            return name
        owner = value.owner
        if isinstance(owner, ItemOp | SliceOp):
            return self.item_text(owner)
        if isinstance(owner, PrimitiveOp):
            return self.call_text(owner)
        if isinstance(owner, ComputeOp):
            return self.computed_text(owner)
        return self.names.name(value)

    def computed_text(self, op: ComputeOp) -> str:
        """Returns the text of arithmetic, with parentheses where Python needs them."""
        # The right side is grouped where it binds as tightly, too: a - (b - c).
        least = 1 if op.op.data in _TIGHT else 0
        sides: list[str] = []
        for place, side in enumerate(op.arguments):
            text = self.text(side)
            inner = side.value.owner if isinstance(side, Ref) else None
            if isinstance(inner, ComputeOp) and (1 if inner.op.data in _TIGHT else 0) < least + place:
                text = f"({text})"
            sides.append(text)
        return f"{sides[0]} {op.op.data} {sides[1]}"

    def item_text(self, op: ItemOp | SliceOp) -> str:
        """Returns the text of an item or slice, `loops[1:]`."""
        base = self.value_text(op.list)
        if isinstance(op, ItemOp):
            return f"{base}[{op.index.value.data}]"
        start, stop, step = ("" if b is None else str(b.value.data) for b in (op.start, op.stop, op.step))
        return f"{base}[{start}:{stop}{f':{step}' if step else ''}]"

    def text(self, value: Argument) -> str:
        """Returns an argument."""
        match value:
            case Ref():
                return self.value_text(value.value)
            case Splat():
                return f"*{self.value_text(value.value)}"
            case Lambda():
                return lambda_text(value, self.tuples)
            case str():
                return quoted(value)
            case bool() | int() | float() | None:
                return repr(value)
            case Mapping():
                return "{" + ", ".join(f"{quoted(k)}: {self.text(v)}" for k, v in value.items()) + "}"
            case _:
                return f"[{', '.join(map(self.text, value))}]"


def _generic_name(value: SSAValue) -> str:
    match value.type:
        case BlockType():
            return "b"
        case LoopType():
            return "l"
        case ListType(element=LoopType()):
            return "loops"
        case ListType(element=BlockType()):
            return "blocks"
        case ListType():
            return "values"
        case _:
            return "v"


def _handles(value: Argument) -> Iterator[SSAValue]:
    match value:
        case Ref() | Splat():
            yield value.value
        case str():
            return
        case Mapping():
            for item in value.values():
                yield from _handles(item)
        case Sequence():
            for item in value:
                yield from _handles(item)
        case _:
            return


def _in_order(op: Operation) -> Iterator[SSAValue]:
    """Yields the handles that an op's text has, in the order of the text."""
    if isinstance(op, PrimitiveOp):
        for value in op.bound.values():
            yield from _handles(value)
    else:
        yield from op.operands


def _call_behind(value: SSAValue) -> Operation | None:
    """Returns the call whose result a value is, or is an unnamed item of."""
    owner = value.owner
    while isinstance(owner, ItemOp | SliceOp) and not owner.result_name.data:
        owner = owner.list.owner
    return owner if isinstance(owner, PrimitiveOp) else None


def _used_once_in_call(value: SSAValue) -> bool:
    """Returns whether a value has one use, perhaps through unnamed items, where its call can be printed."""
    while True:
        uses = list(value.uses)
        if len(uses) != 1:
            return False
        user = uses[0].operation
        if isinstance(user, ItemOp | SliceOp):
            if user.result_name.data:
                return True
            value = user.result
            continue
        if not isinstance(user, PrimitiveOp):
            return False
        return sum(1 for argument in user.bound.values() for v in _handles(argument) if v is value) == 1


def print_trace(script: ScriptOp) -> str:
    """Returns a script as TVM prints a trace: `def apply_trace(sch: tir.Schedule) -> None: …`."""
    lines = ScriptPrinter(tuples=True).lines(script)
    head = ["# from tvm import tir", f"def {script.sym_name.data}(sch: tir.Schedule) -> None:"]
    return "\n".join([*head, *(f"  {line}" for line in lines)])
