"""Refusals of schedule primitives, with excerpts of the function's printed script around an op."""

from __future__ import annotations

import re
from collections.abc import Iterable

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ....dialects import tir
from ....dialects.tir.buffer import AccessOp
from ....support.diagnostics import Diagnostic, MirError, location_of, source_position

# Lines before and after the one with the caret; the lines around them are shortened to the headers of enclosing loops.
_BEFORE, _BEHIND = 3, 8


class ScheduleError(MirError):
    """The refusal of a primitive; the module is as before. `where` is the op or buffer that it is about."""

    def __init__(self, diagnostics: Iterable[Diagnostic] | Diagnostic, where: Operation | SSAValue | None = None):
        super().__init__(diagnostics)
        self.where = where


def refuse(where: Operation | SSAValue | LocationAttr | None, message: str, *notes: str) -> ScheduleError:
    """Returns a refusal at an op: `message` names the rule that it breaks, the notes say what is legal."""
    diagnostic = Diagnostic(message, location_of(where))
    for note in notes:
        diagnostic = diagnostic.with_note(note)
    return ScheduleError(diagnostic, None if isinstance(where, LocationAttr) else where)


def describe(op: Operation) -> str:
    """Returns a loop or block as messages call it."""
    match op:
        case tir.ForOp():
            return f"loop '{op.var_name.data}'"
        case tir.BlockOp():
            return f"block '{op.block_name.data}'"
        case tir.PrimFuncOp():
            return f"function '{op.sym_name.data}'"
        case _:
            return f"'{op.name}'"


def located(error: MirError, location: LocationAttr) -> ScheduleError:
    """Returns a refusal told at a place of the script, with the program as it is now."""
    first, *more = error.diagnostics
    notes = list(first.notes)
    where = error.where if isinstance(error, ScheduleError) else None
    notes += program_notes(where)
    return ScheduleError((Diagnostic(first.message, location, tuple(notes)), *more), where)


def _described(value: Operation | SSAValue) -> str:
    """Returns a loop, a block, an axis or a buffer as messages call it."""
    if isinstance(value, Operation):
        return describe(value) if isinstance(value, (tir.ForOp, tir.BlockOp, tir.PrimFuncOp)) else "it"
    owner = value.owner
    block = owner.parent_op() if isinstance(owner, Block) else None
    if isinstance(block, tir.BlockOp) and isinstance(value, BlockArgument):
        return f"axis '{block.iter_names.data[value.index].data}'"
    return f"buffer '{tir.buffer_name(value)}'" if isinstance(value.type, tir.BufferType) else "it"


def program_notes(where: Operation | SSAValue | None) -> list[Diagnostic]:
    """Notes that show an op or buffer: in the program as it is now, and where it was written."""
    if where is None:
        return []
    notes: list[Diagnostic] = []
    text = excerpt(where)
    if text is not None:
        notes.append(Diagnostic(f"in the program as it is here:\n{text}", severity="note"))
    location = location_of(where)
    if source_position(location) is not None:
        notes.append(Diagnostic(f"{_described(where)} comes from here", location, severity="note"))
    return notes


def excerpt(where: Operation | SSAValue) -> str | None:
    """Returns lines of a function's script with a caret at an op or buffer; None if it is not in one."""
    from ....parser.tvmscript.printer import FunctionPrinter

    op = _op_of(where)
    function = _function_of(op)
    if op is None or function is None:
        return None
    printer = FunctionPrinter(function, {})
    try:
        printer.print("")
    except MirError:
        return None
    place = _line_of(op, printer.lines_of)
    if place is None:
        return None
    lines = printer.lines
    name = _name_of(where, op)
    if isinstance(op, tir.BlockOp) and isinstance(where, BlockArgument):
        place = _line_of_axis(lines, place, name)
    column = _column(lines[place], name)
    shown = _shown(lines, place)
    out: list[str] = []
    previous = 0
    for number in sorted(shown):
        if number > previous + 1:
            out.append(f"{_indent(lines[number])}…")
        out.append(lines[number])
        if number == place:
            out.append(f"{' ' * column}^")
        previous = number
    if previous < len(lines) - 1:
        out.append("…")
    return "\n".join(out)


def _op_of(where: Operation | SSAValue) -> Operation | None:
    if isinstance(where, Operation):
        return where
    owner = where.owner
    return owner.parent_op() if isinstance(owner, Block) else owner


def _function_of(op: Operation | None) -> tir.PrimFuncOp | None:
    while op is not None and not isinstance(op, tir.PrimFuncOp):
        op = op.parent_op()
    return op


def _line_of(op: Operation, lines_of: dict[Operation, int]) -> int | None:
    """Returns the line of an op, or of the statement that an expression is part of."""
    current: Operation | None = op
    while current is not None:
        if current in lines_of:
            return lines_of[current]
        user = next(iter(current.results[0].uses), None) if len(current.results) == 1 else None
        current = current.parent_op() if user is None else user.operation
    return None


def _line_of_axis(lines: list[str], block: int, name: str) -> int:
    """Returns the line under a block's first that binds an axis."""
    for number in range(block + 1, len(lines)):
        left, equal, _ = lines[number].partition(" = T.axis.")
        if not equal:
            break
        if name in left.strip().split(", "):
            return number
    return block


def _name_of(where: Operation | SSAValue, op: Operation) -> str:
    """Returns the text under which the caret is put."""
    match op:
        case tir.ForOp():
            return op.var_name.data
        case tir.BlockOp():
            is_axis = isinstance(where, BlockArgument)
            return op.iter_names.data[where.index].data if is_axis else f'"{op.block_name.data}"'
        case AccessOp() | tir.BufferRegionOp():
            return tir.buffer_name(op.buffer)
        case tir.BufferOp():
            return op.var_name.data
        case tir.PrimFuncOp():
            is_parameter = isinstance(where, BlockArgument)
            return op.param_names.data[where.index].data if is_parameter else op.sym_name.data
        case _:
            return ""


def _column(line: str, name: str) -> int:
    """Returns the column of a name in its line; of the line's first character where it is not found."""
    # A printed name may end in a number: the name as it was is its beginning.
    exact = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", line) if name else None
    found = exact or (re.search(rf"(?<!\w){re.escape(name)}", line) if name else None)
    return len(_indent(line)) if found is None else found.start()


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _shown(lines: list[str], place: int) -> set[int]:
    """Returns the lines around one, and the headers of all that they are inside of."""
    shown = {k for k in range(place - _BEFORE, place + _BEHIND + 1) if 0 < k < len(lines)}
    for start in (min(shown, default=place), place):
        depth = len(_indent(lines[start]))
        for k in range(start, 0, -1):
            if len(_indent(lines[k])) < depth:
                depth = len(_indent(lines[k]))
                shown.add(k)
    return shown
