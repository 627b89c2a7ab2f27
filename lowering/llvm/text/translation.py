"""The `llvm` dialect (with `llvm_ext`) as LLVM IR text, which `llvmlite.binding.parse_assembly` reads.

Text is built directly, one line per op, with a table from op class to its line. Values are named when first met, so blocks
may come in any order; block arguments become phis; intrinsics are declared once per set of types under LLVM's mangled name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ....dialects import llvm_ext
from ....support.diagnostics import error_at, source_position
from ....support.garbage import no_collection
from ....support.operands import operands_of, segment
from ....support.walk import ops_in
from ...externs import check_extern
from .instructions import CONSTANTS, LINES
from .ir_text import attribute_text, escaped, global_initializer, intrinsic_suffixes, symbol, type_text

Line = Callable[["FunctionWriter", Operation], None]

_ATTRIBUTE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*+(?:\([A-Za-z0-9_, ]*+\))?")
"""An attribute of a function: `nounwind`, `memory(none)`, `prefer-vector-width`."""


def translate(
    module: ModuleOp,
    *,
    triple: str | None = None,
    debug: bool = False,
    attributes: str = "",
    externs: Collection[str] | None = None,
) -> str:
    """Translates a module in the `llvm` dialect to LLVM IR text.

    `triple` names the target in the text; `debug` keeps each op's line (as `!dbg`) for debuggers and profilers;
    `attributes` are LLVM function attributes that every definition gets, such as `"prefer-vector-width"="512"`. `externs`
    are the names that the module may refer to and does not define, beside those of `..externs`; None allows all.
    Raises `MirError` at an op that is not of the `llvm` dialect, and where the module refers to what it may not.
    """
    with no_collection():
        return ModuleWriter(triple, debug, attributes, externs).write(module)


DWARF = 4
"""The version of DWARF: debuggers of all systems read it, and its tables of lines hold their names themselves."""


def _quoted(text: str) -> str:
    """Escapes text of debug information, and the signs of names that a library changes in its text."""
    return escaped(text).replace("!", "\\21").replace("@", "\\40")


NO_CODE = frozenset({"schedule.rule", "mirstack.target"})
"""Ops of a module that say how its code is made."""


@dataclass
class ModuleWriter:
    """The text of one module."""

    triple: str | None
    debug: bool
    attributes: str
    externs: Collection[str] | None = None
    declared: dict[str, str] = field(default_factory=dict[str, str])
    """Intrinsics in use: mangled name to declaration."""
    metadata: list[str] = field(default_factory=list[str])
    functions: dict[str, llvm.FuncOp] = field(default_factory=dict[str, llvm.FuncOp])
    files: dict[str, int] = field(default_factory=dict[str, int])
    units: dict[str, str] = field(default_factory=dict[str, str])
    """The debug information's compile units, by source file."""

    def write(self, module: ModuleOp) -> str:
        """Writes the whole module."""
        lines: list[str] = []
        if self.triple is not None:
            lines.append(f'target triple = "{self.triple}"')
        ops = list(module.body.ops)
        for op in ops:
            if isinstance(op, llvm.FuncOp):
                self.functions[op.sym_name.data] = op
        for op in ops:
            if self.externs is not None and isinstance(op, llvm.FuncOp | llvm.GlobalOp) and is_declaration(op):
                check_extern(module, op, self.externs)
            match op:
                case llvm.FuncOp():
                    self.function(op, lines)
                case llvm.GlobalOp():
                    lines.append(self.global_variable(op))
                case _ if op.name.startswith("rule.") or op.name in NO_CODE:
                    pass  # Rules of the module were for its passes; they are no code.
                case _:
                    raise error_at(
                        op, f"'{op.name}' is not of the llvm dialect", "run lower-std-to-llvm before translating"
                    )
        named = {op.sym_name.data for op in ops if isinstance(op, llvm.FuncOp)}
        lines += [text for name, text in self.declared.items() if name not in named]
        if self.attributes:
            lines.append(f"attributes #0 = {{ {self.attributes} }}")
        if self.debug and self.files:
            flag = self.node('!{i32 2, !"Debug Info Version", i32 3}')
            version = self.node(f'!{{i32 7, !"Dwarf Version", i32 {DWARF}}}')
            lines.append(f"!llvm.module.flags = !{{{flag}, {version}}}")
            # LLVM drops all debug locations of a module that does not list its units.
            lines.append(f"!llvm.dbg.cu = !{{{', '.join(self.units.values())}}}")
        lines += [f"!{number} = {text}" for number, text in enumerate(self.metadata)]
        return "\n".join(lines) + "\n"

    def node(self, text: str) -> str:
        """Adds a metadata node."""
        self.metadata.append(text)
        return f"!{len(self.metadata) - 1}"

    def loop_node(self, annotation: llvm_ext.LoopAnnotationAttr) -> str:
        """Returns a loop's own distinct node: its first operand is itself."""
        number = len(self.metadata)
        self.metadata.append("")
        parts = [f"!{number}"]
        for key, value in annotation.hints().items():
            if key in ("vectorize.enable", "distribute.enable"):
                parts.append(self.node(f'!{{!"llvm.loop.{key}", i1 {"true" if value else "false"}}}'))
            elif key in ("vectorize.width", "interleave.count", "unroll.count"):
                parts.append(self.node(f'!{{!"llvm.loop.{key}", i32 {value}}}'))
            elif value:
                prefix = "llvm.loop" if key != "licm.disable" else "llvm"
                parts.append(self.node(f'!{{!"{prefix}.{key}"}}'))
        self.metadata[number] = f"distinct !{{{', '.join(parts)}}}"
        return f"!{number}"

    def file_node(self, name: str) -> str:
        """Returns the `DIFile` and compile unit of a source file; returns the file's node."""
        number = self.files.get(name)
        if number is None:
            directory, _, base = name.rpartition("/")
            number = len(self.metadata)
            self.metadata.append(f'!DIFile(filename: "{_quoted(base)}", directory: "{_quoted(directory or ".")}")')
            self.files[name] = number
        return f"!{number}"

    def unit_node(self, name: str) -> str:
        """Returns the compile unit of a source file."""
        unit = self.units.get(name)
        if unit is None:
            unit = self.units[name] = self.node(
                f'distinct !DICompileUnit(language: DW_LANG_C, file: {self.file_node(name)}, producer: "mirstack", '
                "isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly)"
            )
        return unit

    def subprogram(self, op: llvm.FuncOp) -> str | None:
        """Returns the function's debug scope, None when it has no source position."""
        position = source_position(op.location)
        if position is None:
            return None
        name, line, _ = position
        file = self.file_node(name)
        unit = self.unit_node(name)
        kind = self.node("!DISubroutineType(types: !{null})")
        return self.node(
            f'distinct !DISubprogram(name: "{_quoted(op.sym_name.data)}", scope: {file}, file: {file}, line: {line}, '
            f"type: {kind}, scopeLine: {line}, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: {unit})"
        )

    def global_variable(self, op: llvm.GlobalOp) -> str:
        """Writes a global's line."""
        linkage = op.linkage.linkage.data
        value = global_initializer(op)
        words = [f"@{symbol(op.sym_name.data)} =", linkage if value is None or linkage != "external" else ""]
        words.append("thread_local" if op.thread_local_ is not None else "")
        words.append(
            {1: "local_unnamed_addr", 2: "unnamed_addr"}.get(op.unnamed_addr.value.data, "") if op.unnamed_addr else ""
        )
        words.append(f"addrspace({op.addr_space.value.data})" if op.addr_space.value.data else "")
        words.append("constant" if op.constant is not None else "global")
        words.append(value if value is not None else type_text(op.global_type))
        text = " ".join(word for word in words if word)
        if op.section is not None:
            text += f', section "{escaped(op.section.data)}"'
        return text + (f", align {op.alignment.value.data}" if op.alignment is not None else "")

    def function(self, op: llvm.FuncOp, lines: list[str]) -> None:
        """Writes a declaration, or a definition with its blocks."""
        type_ = op.function_type
        attrs = op.arg_attrs.data if op.arg_attrs is not None else ()
        writer = self.function_writer(lines)
        parameters: list[str] = []
        first = op.body.blocks.first
        for position, input_ in enumerate(type_.inputs):
            text = type_text(input_) + (attribute_text(attrs[position]) if attrs else "")
            parameters.append(text if first is None else f"{text} {writer.name(first.args[position])}")
        if type_.is_variadic:
            parameters.append("...")
        linkage = op.linkage.linkage.data
        convention = op.CConv.convention.data
        head = [
            "declare" if first is None else "define",
            linkage if linkage != "external" else "",
            {1: "hidden", 2: "protected"}.get(op.visibility_.value.data, ""),
            convention if convention != "ccc" else "",
            (attribute_text(op.res_attrs.data[0]).strip() if op.res_attrs else ""),
            f"{type_text(type_.output)} @{symbol(op.sym_name.data)}({', '.join(parameters)})",
            {1: "local_unnamed_addr", 2: "unnamed_addr"}.get(op.unnamed_addr.value.data, "") if op.unnamed_addr else "",
            function_attributes(op),
            "#0" if self.attributes and first is not None else "",
        ]
        text = " ".join(word for word in head if word)
        if first is None:
            lines.append(text)
            return
        writer.scope = self.subprogram(op) if self.debug else None
        writer.file = (source_position(op.location) or ("", 0, 0))[0]
        lines.append(text + (f" !dbg {writer.scope}" if writer.scope else "") + " {")
        writer.blocks(op)
        lines.append("}")

    def function_writer(self, lines: list[str]) -> FunctionWriter:
        """Returns the writer of one function, which adds to `lines`."""
        return FunctionWriter(self, lines)

    def intrinsic(self, name: str, operands: Sequence[SSAValue], result: Attribute | None) -> str:
        """Returns the mangled name of an intrinsic, which is declared if it was not."""
        types = [operand.type for operand in operands]
        mangled = name + intrinsic_suffixes(name, types, result)
        if mangled not in self.declared:
            output = type_text(result) if result is not None else "void"
            self.declared[mangled] = f"declare {output} @{mangled}({', '.join(type_text(type_) for type_ in types)})"
        return mangled


def is_declaration(op: llvm.FuncOp | llvm.GlobalOp) -> bool:
    """Tells whether the op only names a definition outside of the module."""
    if isinstance(op, llvm.FuncOp):
        return op.body.blocks.first is None
    return op.value is None and "zero" not in op.attributes


def function_attributes(op: llvm.FuncOp) -> str:
    """Returns LLVM's attributes of a function: those of the op's properties, and `passthrough`.

    A function that was parsed has them among its attributes.
    """
    attrs = {**op.attributes, **op.properties}
    flags = (("no_unwind", "nounwind"), ("no_inline", "noinline"), ("optimize_none", "optnone"))
    words = [word for key, word in flags if attrs.get(key) is not None]
    passthrough = attrs.get("passthrough")
    for attr in passthrough.data if isinstance(passthrough, ArrayAttr) else ():
        match attr:
            case StringAttr() if _ATTRIBUTE.fullmatch(attr.data):
                # LLVM knows attributes of one word; all others are strings.
                words.append(f'"{escaped(attr.data)}"' if "-" in attr.data else attr.data)
            case ArrayAttr(data=(StringAttr(data=key), StringAttr(data=value))):
                words.append(f'"{escaped(key)}"="{escaped(value)}"')
            case _:
                raise error_at(
                    op, f"passthrough holds {attr}", 'it holds attributes, such as "nounwind", and pairs of strings'
                )
    if isinstance(cpu := attrs.get("target_cpu"), StringAttr):
        words.append(f'"target-cpu"="{escaped(cpu.data)}"')
    if isinstance(features := attrs.get("target_features"), llvm.TargetFeaturesAttr):
        words.append(f'"target-features"="{escaped(",".join(feature.data for feature in features.features))}"')
    if isinstance(pointer := attrs.get("frame_pointer"), llvm.FramePointerKindAttr):
        words.append(f'"frame-pointer"="{pointer.data.value}"')
    return " ".join(words)


class FunctionWriter:
    """The text of one function: names of its values and blocks, its phis."""

    def __init__(self, module: ModuleWriter, lines: list[str]) -> None:
        self.module = module
        self.lines = lines
        self.names: dict[SSAValue, str] = {}
        self.labels: dict[Block, str] = {}
        self.scope: str | None = None
        self.file = ""
        """The source file of `scope`."""
        self.scopes: dict[str, str] = {}
        """The scopes of ops from other source files, by file."""
        self.incoming: dict[Block, list[tuple[str, Sequence[SSAValue]]]] = {}
        self.split_edges: list[str] = []
        self.split_labels: dict[tuple[Operation, int], str] = {}
        """The blocks that edges go through, by terminator and the edge's place."""
        self.places: dict[tuple[str, int, int], str] = {}

    # Names

    def name(self, value: SSAValue) -> str:
        """Returns the value's name, or its text where it is a constant."""
        known = self.names.get(value)
        if known is None:
            known = self.names[value] = self.new_name(value)
        return known

    def new_name(self, value: SSAValue) -> str:
        """Returns a new name, or the text of a constant, which is written where it is used."""
        owner = value.owner
        constant = CONSTANTS.get(type(owner))
        if constant is not None:
            return constant(owner)
        hint = value.name_hint
        return f"%v{len(self.names)}" if hint is None or not hint.isascii() else f"%{hint}_{len(self.names)}"

    def typed(self, value: SSAValue) -> str:
        """Returns type and name."""
        return f"{type_text(value.type)} {self.name(value)}"

    def all_typed(self, values: Sequence[SSAValue]) -> str:
        """Returns types and names, with commas."""
        return ", ".join([f"{type_text(value.type)} {self.name(value)}" for value in values])

    def label(self, block: Block) -> str:
        """Returns the block's name."""
        known = self.labels.get(block)
        if known is None:
            known = self.labels[block] = f"b{len(self.labels)}"
        return known

    # Lines

    def line(self, op: Operation, text: str) -> None:
        """Writes a line of the function, with its debug location when there is one to keep."""
        if self.scope is not None:
            text += self.debug_location(op)
        self.lines.append(text)

    def result(self, op: Operation, text: str) -> None:
        """Writes a line that defines the op's only result."""
        (result,) = op.results
        self.line(op, f"  {self.name(result)} = {text}")

    def debug_location(self, op: Operation) -> str:
        """Returns `, !dbg !n`: the op's line; a call without one takes the function's, for LLVM insists."""
        location = op.location
        position = source_position(location)
        if position is None:
            if not isinstance(op, llvm.CallOp):
                return ""
            position = (self.file, 0, 0)
        node = self.places.get(position)
        if node is None:
            file, line, column = position
            node = self.module.node(f"!DILocation(line: {line}, column: {column}, scope: {self._scope_of(file)})")
            self.places[position] = node
        return f", !dbg {node}"

    def _scope_of(self, file: str) -> str | None:
        """Returns the scope of a line of a source file within the function."""
        if file == self.file or self.scope is None:
            return self.scope
        known = self.scopes.get(file)
        if known is None:
            known = self.scopes[file] = self.module.node(
                f"!DILexicalBlockFile(scope: {self.scope}, file: {self.module.file_node(file)}, discriminator: 0)"
            )
        return known

    def blocks(self, op: llvm.FuncOp) -> None:
        """Writes every block: label, phis, ops."""
        entry = op.body.blocks.first
        for block in op.body.blocks:
            if (last := block.last_op) is not None and last.successors:
                self.collect_edges(block, last)
        for block in op.body.blocks:
            if block is not entry:
                self.lines.append(f"{self.label(block)}:")
                self.phis(block)
            elif block in self.incoming:
                raise error_at(op, "the entry block of a function is the target of a branch", "add a block before it")
            else:
                self.lines.append(f"{self.label(block)}:")
            for inner in ops_in(block):
                line = LINES.get(type(inner))
                if line is None:
                    raise error_at(
                        inner, f"'{inner.name}' is not of the llvm dialect", "run lower-std-to-llvm before translating"
                    )
                line(self, inner)
        self.lines += self.split_edges

    def phis(self, block: Block) -> None:
        """Writes one phi per block argument."""
        incoming = self.incoming.get(block, ())
        for argument in block.args:
            if not incoming:
                # No branch leads here: the block is dead, and any value will do.
                self.names[argument] = "poison"
                continue
            sources = ", ".join(f"[ {self.name(operands[argument.index])}, %{label} ]" for label, operands in incoming)
            self.lines.append(f"  {self.name(argument)} = phi {type_text(argument.type)} {sources}")

    def collect_edges(self, block: Block, last: Operation) -> None:
        """Notes the operands sent to each successor; a second edge to a block gets a block of its own."""
        label = self.label(block)
        seen: set[Block] = set()
        for position, (target, operands) in enumerate(edges(last)):
            source = label
            if target in seen:
                if not operands:
                    # LLVM wants as many phi entries as edges, but this block has no phis.
                    continue
                source = f"{label}.{position}"
                self.split_edges += [f"{source}:", f"  br label %{self.label(target)}"]
                self.split_labels[last, position] = source
            seen.add(target)
            self.incoming.setdefault(target, []).append((source, operands))

    def target(self, block: Block, last: Operation, position: int) -> str:
        """Returns the label that edge `position` of a terminator jumps to."""
        return f"label %{self.split_labels.get((last, position)) or self.label(block)}"

    def loop_metadata(self, op: Operation) -> str:
        """Returns `, !llvm.loop !n` where the branch carries an annotation."""
        annotation = op.attributes.get("loop_annotation")
        if not isinstance(annotation, llvm_ext.LoopAnnotationAttr):
            return ""
        return f", !llvm.loop {self.module.loop_node(annotation)}"


def edges(op: Operation) -> list[tuple[Block, Sequence[SSAValue]]]:
    """Returns (target, values for its arguments) of each successor of a terminator."""
    match op:
        case llvm.BrOp():
            return [(op.successors[0], operands_of(op))]
        case llvm.CondBrOp():
            return [(block, segment(op, place)) for place, block in enumerate(op.successors, start=1)]
        case llvm_ext.SwitchOp():
            cases = [(block, operands) for _, block, operands in op.cases()]
            return [(op.default_block, tuple(op.default_operands)), *cases]
        case _:
            return [(block, ()) for block in op.successors]
