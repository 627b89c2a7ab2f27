"""LLVM IR and assembly of a lowered module, line by line with the places in the source.

Assembly is made of a text whose debug lines are numbers of sets of places: LLVM carries them through its optimizations.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ...lowering.llvm.jit.load import Target, emit_assembly
from ...lowering.llvm.text.translation import FunctionWriter, ModuleWriter
from ...support.diagnostics import file_loc, source_position
from .tables import NOWHERE, Tables
from .texts import Text, shortened


@dataclass
class _MarkingWriter(ModuleWriter):
    """Writes LLVM IR, and notes the op of each line; with `tables`, debug lines are numbers of sets."""

    ops: dict[int, list[Operation]] = field(default_factory=dict[int, list[Operation]])
    tables: Tables | None = None

    def function_writer(self, lines: list[str]) -> FunctionWriter:
        return _MarkingFunctionWriter(self, lines)


class _MarkingFunctionWriter(FunctionWriter):
    def __init__(self, module: _MarkingWriter, lines: list[str]):
        super().__init__(module, lines)
        self.marking = module
        self.nodes: dict[int, str] = {}

    def line(self, op: Operation, text: str) -> None:
        self.marking.ops.setdefault(len(self.lines), []).append(op)
        super().line(op, text)

    def debug_location(self, op: Operation) -> str:
        """Returns `, !dbg !n`, whose line is the number of the set of the op's places."""
        tables = self.marking.tables
        assert tables is not None
        number = tables.set_at(op.location)
        node = self.nodes.get(number)
        if node is None:
            node = self.nodes[number] = self.module.node(f"!DILocation(line: {number}, column: 0, scope: {self.scope})")
        return f", !dbg {node}"


def llvm_ir(name: str, module: ModuleOp, externs: Collection[str]) -> Text:
    """Returns the LLVM IR of a module in the LLVM dialect."""
    writer = _MarkingWriter(None, False, "", externs)
    text = writer.write(module)
    return Text(name, "llvm", shortened(text.rstrip("\n")), writer.ops)


def with_set_numbers(module: ModuleOp, externs: Collection[str], tables: Tables) -> str:
    """Returns the LLVM IR of a module, which is used up, whose debug lines are numbers of sets of places."""
    for op in module.ops:
        # LLVM keeps lines only of functions that have one themselves.
        if isinstance(op, llvm.FuncOp) and source_position(op.location) is None:
            op.location = file_loc(op.sym_name.data, 1, 1)
    return _MarkingWriter(None, True, "", externs, tables=tables).write(module)


def assembly(text: str, target: Target) -> tuple[list[str], list[int]]:
    """Compiles LLVM IR of `with_set_numbers`; returns the lines of the assembly, and the set of each."""
    lines: list[str] = []
    sets: list[int] = []
    current, is_debug = NOWHERE, False
    for line in emit_assembly(text, target).split("\n"):
        words = line.split(None, 3)
        first = words[0] if words else ""
        if first == ".section" or first in (".text", ".data", ".bss"):
            is_debug = ".debug" in line
        if first == ".loc":
            current = int(words[2])
            continue
        if is_debug or not first or first.startswith(_LEFT_OUT) or _TEMPORARY.match(first):
            continue
        if _FUNCTION.match(line):
            current = NOWHERE
        lines.append(line)
        sets.append(current if first[:1] not in ".#" and not first.endswith(":") else NOWHERE)
    return [shortened(line)[0] for line in lines], sets


_LEFT_OUT = (".cfi_", ".file", ".ident", ".addrsig")
_TEMPORARY = re.compile(r"\.L(tmp|func_begin|func_end|sec_end)\d+:")
_FUNCTION = re.compile(r"[^\s.#]\S*:")
