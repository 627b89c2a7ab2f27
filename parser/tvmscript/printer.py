"""Prints modules, functions and their statements, in the style of TVM 0.16's printer."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, NoneType, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.tir.buffer import (
    AllocateConstOp,
    AllocateOp,
    AllocBufferOp,
    BufferOp,
    BufferRegionOp,
    DeclBufferOp,
    MatchBufferOp,
    StoreOp,
)
from ...dialects.tir.expr import CallOp, LetOp, VarOp, YieldOp
from ...dialects.tir.operators import as_const
from ...dialects.tir.stmt import (
    AssertOp,
    AttrOp,
    BlockOp,
    EnvThreadOp,
    EvaluateOp,
    ForOp,
    IfOp,
    InitOp,
    LaunchThreadOp,
    PrefetchOp,
    PrimFuncOp,
    ReadsOp,
    RealizeOp,
    ScopeOp,
    WhileOp,
    WritesOp,
)
from ...dialects.tir.types import BufferType, HandleType
from ...support.diagnostics import error_at
from .inlined_values import Plan
from .names import Names
from .print_definitions import DefinitionPrinter, shape_text
from .print_expressions import (
    annotation,
    dictionary_text,
    dtype,
    integer_text,
    quoted,
)

_TAB = "    "
_IMPORT_IR = "# from tvm.script import ir as I"
_IMPORT_TIR = "# from tvm.script import tir as T"


def loop_grid(op: ForOp, skipped: Container[Operation]) -> list[ForOp]:
    """Returns the plain loops, directly nested, that begin with `op`; `skipped` ops print no statement.

    No extent depends on the variable of a loop before it.
    """
    loops: list[ForOp] = []
    variables: set[SSAValue] = set()
    current: ForOp | None = op
    while current is not None and is_plain(current) and not _uses_any(current.extent, variables):
        loops.append(current)
        variables.add(current.loop_var)
        current = _only_loop(current.body.block, skipped)
    return loops


def _only_loop(block: Block, skipped: Container[Operation]) -> ForOp | None:
    """The loop that is a region's one statement."""
    found: ForOp | None = None
    for op in block.ops:
        if op in skipped:
            continue
        if found is not None or not isinstance(op, ForOp):
            return None
        found = op
    return found


def is_plain(op: ForOp) -> bool:
    """Returns whether a loop may be part of a `T.grid`."""
    low = as_const(op.min)
    return op.kind.data == "serial" and low is not None and low.value == 0 and not op.annotations.data


def _uses_any(value: SSAValue, variables: set[SSAValue]) -> bool:
    """Returns whether an expression depends on one of the variables."""
    if not variables:
        return False
    pending, seen = [value], {value}
    while pending:
        current = pending.pop()
        if current in variables:
            return True
        op = current.owner
        if isinstance(op, Operation) and not isinstance(op, LetOp):
            inner = list(op.operands)
            for region in op.regions:
                for block in region.blocks:
                    inner += [operand for o in block.ops for operand in o.operands]
            for operand in inner:
                if operand not in seen:
                    seen.add(operand)
                    pending.append(operand)
    return False


class FunctionPrinter(DefinitionPrinter):
    """Prints one function, its values named by `names`."""

    def __init__(self, op: PrimFuncOp, callees: dict[str, str], names: Names | None = None):
        super().__init__(names or Names(), Plan(op.body.block), callees)
        self.function = op
        self.lines: list[str] = []
        # The line (from 0) at which each statement begins.
        self.lines_of: dict[Operation, int] = {op: 1}
        self.indent = ""
        self.comment_at: Operation | None = None
        self.is_tail = False
        for name in callees.values():
            self.names.reserve(name.partition(".")[0])

    def print(self, indent: str) -> str:
        """The function's text, without a line end."""
        op = self.function
        self.indent = indent
        private = op.sym_visibility is not None and op.sym_visibility.data == "private"
        self.line("@T.prim_func(private=True)" if private else "@T.prim_func")
        parameters: list[str] = []
        for name, arg in zip(op.param_names.data, op.params, strict=True):
            parameters.append(f"{self.names.define(arg, name.data)}: {self.parameter(arg)}")
        result = "" if isinstance(op.ret_type, NoneType) else f" -> {annotation(op.ret_type)}"
        self.line(f"def {op.sym_name.data}({', '.join(parameters)}){result}:")
        self.indent += _TAB
        before = len(self.lines)
        if op.attrs.data:
            self.line(f"T.func_attr({dictionary_text(op.attrs, op)})")
        self.comment_at = self.root_comment(op.body.block)
        self.statements(op.body.block, before)
        return "\n".join(self.lines)

    def parameter(self, arg: SSAValue) -> str:
        """A parameter's annotation."""
        if isinstance(arg.type, BufferType):
            shape = shape_text([integer_text(d.value.data, d.type) for d in arg.type.shape.data])  # pyright: ignore
            return f"T.Buffer({shape}, {dtype(arg.type.dtype)})"
        return annotation(arg.type)

    def root_comment(self, block: Block) -> Operation | None:
        """Returns the statement above which TVM notes the implicit root block; None without blocks."""
        statements = [
            op for op in block.ops if op not in self.plan.inline and not isinstance(op, VarOp | MatchBufferOp)
        ]
        allocates = any(isinstance(op, AllocBufferOp) for op in statements)
        if not allocates:
            if len(statements) == 1 and isinstance(statements[0], BlockOp):
                if not len(statements[0].iter_vars):
                    return None
            elif not _contains_block(statements):
                return None
        return statements[0] if statements else None

    # Statements

    def line(self, text: str) -> None:
        """Adds a line."""
        self.lines.append(self.indent + text)

    def statements(self, block: Block, before: int | None = None) -> None:
        """A region's statements, in a scope of names; `pass` where there are none."""
        start = len(self.lines) if before is None else before
        with self.names.scope():
            self.sequence(list(block.ops))
        if len(self.lines) == start:
            self.line("pass")

    def body(self, block: Block) -> None:
        """A region one step further in."""
        outer, self.indent = self.indent, self.indent + _TAB
        self.statements(block)
        self.indent = outer

    def sequence(self, ops: list[Operation]) -> None:
        """Prints statements in order; the scope of a `T.LetStmt` of an outer variable contains the rest."""
        outer = self.indent
        try:
            for number, op in enumerate(ops):
                if op in self.plan.inline:
                    continue
                if op is self.comment_at:
                    self.line('# with T.block("root"):')
                if op in self.plan.lets:
                    self.let(op.results[0], op.results[0].name_hint or "v", self.definition(op))
                    continue
                if isinstance(op, LetOp) and op.var is not None:
                    self.line(f"with {self.scope_text(op)}:")
                    self.indent += _TAB
                    if number == len(ops) - 1:
                        self.line("pass")
                    continue
                printer = _PRINTERS.get(type(op))
                if printer is None:
                    raise error_at(op, f"'{op.name}' has no TVMScript text", "print the module with '-t mlir'")
                self.lines_of[op] = len(self.lines)
                printer(self, op)
        finally:
            self.indent = outer

    def let(self, value: SSAValue, name: str, text: str) -> None:
        """`x: T.int32 = text`."""
        name = self.names.define(value, name)
        self.line(f"{name}: {annotation(value.type)} = {text}")

    def print_let(self, op: LetOp) -> None:
        text = self.text(op.value)
        self.let(op.result, op.var_name.data, text)

    def print_var(self, op: VarOp) -> None:
        """Prints `n = T.int32()`, together with the other variables of one buffer's shape.

        The variables of strides are printed as strings in the buffer's declaration.
        """
        if op.result in self.names.of or self.is_inline_name(op):
            return
        together = self.declared_together(op)
        names = [self.names.define(var.result, var.var_name.data) for var in together]
        self.line(f"{', '.join(names)} = {', '.join(map(_maker, together))}")

    def declared_together(self, op: VarOp) -> list[VarOp]:
        """Returns the consecutive variables from `op` on that the shape of the next buffer declares."""
        row = [op]
        following = op.next_op
        while following is not None:
            if isinstance(following, VarOp):
                if not self.is_inline_name(following):
                    row.append(following)
            elif following not in self.plan.inline:
                break
            following = following.next_op
        if isinstance(following, BufferOp):
            shape = set(following.shape)
            if all(var.result in shape for var in row):
                return row
        return [op]

    def print_store(self, op: StoreOp) -> None:
        """`A[i] = value`."""
        value = self.text(op.value)
        name = self.names.name(op.buffer)
        if op.predicate is not None:
            indices = self.texts(op.indices)
            self.line(f"{name}.vstore([{indices}], {value}, predicate={self.text(op.predicate)})")
            return
        self.line(f"{name}[{self.indices(op.indices)}] = {value}")

    def print_evaluate(self, op: EvaluateOp) -> None:
        """Prints `T.evaluate(x)`; of a call only the call, and of the function's final `T.ret` a `return`."""
        call = op.value.owner
        if isinstance(call, CallOp) and call in self.plan.inline:
            last = op.parent is self.function.body.block and op.next_op is None
            if call.intrinsic.data == "ret" and last and len(call.arguments) == 1:
                self.line(f"return {self.text(call.arguments[0])}")
            else:
                self.line(self.text(op.value))
            return
        self.line(f"T.evaluate({self.text(op.value)})")

    def print_call(self, op: CallOp) -> None:
        """A call without a result, or whose result nothing uses."""
        self.line(self.call(op))

    # Loops and branches

    def print_for(self, op: ForOp) -> None:
        """A loop; plain nested loops whose extents do not depend on each other are a `T.grid`."""
        grid = loop_grid(op, self.plan.inline)
        if len(grid) > 1:
            extents = [self.text(loop.extent) for loop in grid]
            with self.names.scope():
                names = [self.loop_name(loop) for loop in grid]
                self.lines_of.update(dict.fromkeys(grid, len(self.lines)))
                self.line(f"for {', '.join(names)} in T.grid({', '.join(extents)}):")
                self.body(grid[-1].body.block)
            return
        bounds = self.text(op.extent)
        low = as_const(op.min)
        if low is None or low.value != 0:
            bounds = f"{self.text(op.min)}, {self.stop(op.min, op.extent)}"
        if op.thread is not None:
            bounds += f", thread={quoted(op.thread.data)}"
        if op.annotations.data:
            bounds += f", annotations={dictionary_text(op.annotations, op)}"
        kind = op.kind.data
        function = {"serial": "range", "unrolled": "T.unroll"}.get(kind, f"T.{kind}")
        if kind == "serial" and op.annotations.data:
            function = "T.serial"
        with self.names.scope():
            name = self.loop_name(op)
            self.line(f"for {name} in {function}({bounds}):")
            self.body(op.body.block)

    def loop_name(self, op: ForOp) -> str:
        """Names a loop's variable, or takes over the name of the variable it is."""
        if op.var is None:
            return self.names.define(op.loop_var, op.var_name.data)
        self.names.alias(op.loop_var, op.var)
        return self.names.name(op.var)

    def print_if(self, op: IfOp) -> None:
        """`if condition: … else: …`."""
        self.line(f"if {self.text(op.condition)}:")
        self.body(op.then_region.block)
        if op.else_region.blocks:
            self.line("else:")
            self.body(op.else_region.block)

    def print_while(self, op: WhileOp) -> None:
        """`while condition: …`."""
        self.line(f"while {self.region_expression(op.condition.block)}:")
        self.body(op.body.block)

    def print_assert(self, op: AssertOp) -> None:
        """`assert condition, "message"`."""
        self.line(f"assert {self.text(op.condition)}, {quoted(op.message.data)}")

    # Blocks

    def print_block(self, op: BlockOp) -> None:
        """`with T.block("name"): …`."""
        axes = list(zip(op.iter_vars, op.iter_names.data, op.iter_types.data, range(len(op.iter_vars)), strict=True))
        # Bindings are of the loops outside: their text is made before the axes have names.
        runs: list[list[int]] = []
        for _, _, _, k in axes:
            if self.is_remapped(op, k) and runs and self.is_remapped(op, runs[-1][-1]):
                runs[-1].append(k)
            else:
                runs.append([k])
        texts = [self.axes_text(op, run) for run in runs]
        predicate = None if op.predicate is None else self.text(op.predicate)
        self.line(f"with T.block({quoted(op.block_name.data)}):")
        outer, self.indent = self.indent, self.indent + _TAB
        before = len(self.lines)
        with self.names.scope():
            for run, text in zip(runs, texts, strict=True):
                names = [self.names.define(op.iter_vars[k], op.iter_names.data[k].data) for k in run]
                self.line(f"{', '.join(names)} = {text}")
            if predicate is not None:
                self.line(f"T.where({predicate})")
            ops = list(op.body.block.ops)
            if op.annotations.data:
                head = max((i + 1 for i, o in enumerate(ops) if isinstance(o, ReadsOp | WritesOp)), default=0)
                self.sequence(ops[:head])
                self.line(f"T.block_attr({dictionary_text(op.annotations, op)})")
                ops = ops[head:]
            self.sequence(ops)
        if len(self.lines) == before:
            self.line("pass")
        self.indent = outer

    def print_regions(self, op: ReadsOp | WritesOp) -> None:
        """`T.reads(A[i])`."""
        self.line(f"T.{op.name[4:]}({self.texts(op.operands)})")

    def print_init(self, op: InitOp) -> None:
        """`with T.init(): …`."""
        self.line("with T.init():")
        self.body(op.body.block)

    # Buffers

    def print_buffer(self, op: BufferOp) -> None:
        """`A = T.match_buffer(…)` and its like."""
        text = self.buffer_text(op)
        self.line(f"{self.names.define(op.result, op.var_name.data)} = {text}")

    def print_allocate(self, op: AllocateOp) -> None:
        """`p = T.allocate([n], "float32", "global")`."""
        text = self.allocate_text(op)
        self.line(f"{self.names.define(op.result, op.var_name.data)} = {text}")

    def print_allocate_const(self, op: AllocateConstOp) -> None:
        """`p = T.allocate_const([1, 2], "int32", [2])`."""
        text = self.allocate_const_text(op)
        self.line(f"{self.names.define(op.result, op.var_name.data)} = {text}")

    # Scopes, attributes, threads

    def print_scope(self, op: ScopeOp) -> None:
        """`with T.attr(…): …`: the first op of the region that opens a scope opens this one.

        A scope that ends where the statements around it do is those statements.
        """
        ops = list(op.body.block.ops)
        last = op.next_op
        while last is not None and last in self.plan.inline:
            last = last.next_op
        with self.names.scope():
            if last is None:
                self.sequence(ops)
                return
            for number, inner in enumerate(ops):
                if inner in self.plan.inline:
                    continue
                if isinstance(inner, _SCOPES) and not (isinstance(inner, DeclBufferOp) and inner.implicit.value.data):
                    self.line(f"with {self.scope_text(inner)}:")
                    outer, self.indent = self.indent, self.indent + _TAB
                    before = len(self.lines)
                    self.sequence(ops[number + 1 :])
                    if len(self.lines) == before:
                        self.line("pass")
                    self.indent = outer
                    return
                self.sequence([inner])

    def scope_text(self, op: Operation) -> str:
        """Prints the text between `with` and `:`."""
        match op:
            case AttrOp():
                return self.attr_text(op)
            case RealizeOp():
                return self.realize_text(op)
            case AssertOp():
                return f"T.Assert({self.text(op.condition)}, {quoted(op.message.data)})"
            case AllocateOp():
                text = self.allocate_text(op)
            case AllocateConstOp():
                text = self.allocate_const_text(op)
            case DeclBufferOp():
                text = self.buffer_text(op)
            case LaunchThreadOp():
                text = self.launch_text(op)
                if op.env is not None:
                    self.names.alias(op.result, op.env)
                    return text
            case LetOp():
                text = self.text(op.value)
                if op.var is not None:
                    self.names.alias(op.result, op.var)
                    return f"T.LetStmt({text}, var={self.names.name(op.var)})"
                given = f", {annotation(op.result.type)}" if isinstance(op.result.type, HandleType) else ""
                text = f"T.LetStmt({text}{given})"
            case _:
                raise error_at(op, f"'{op.name}' opens no scope")
        name = self.names.define(op.results[0], op.properties["var_name"].data)  # pyright: ignore
        return f"{text} as {name}"

    def print_attr(self, op: AttrOp) -> None:
        """`T.attr(node, "key", value)`."""
        self.line(self.attr_text(op))

    def print_realize(self, op: RealizeOp) -> None:
        """`T.realize(A[0:16], "global")`."""
        self.line(self.realize_text(op))

    def print_prefetch(self, op: PrefetchOp) -> None:
        """`T.prefetch(A, [T.Range(0, 16)])`."""
        region = op.region.owner
        if not isinstance(region, BufferRegionOp):
            raise error_at(op, "what is prefetched is not a region of a buffer")
        ranges = [
            f"T.Range({self.text(low)}, {self.stop(low, extent)})"
            for low, extent in zip(region.mins, region.extents, strict=True)
        ]
        self.line(f"T.prefetch({self.names.name(region.buffer)}, [{', '.join(ranges)}])")

    def print_env_thread(self, op: EnvThreadOp) -> None:
        """`tx = T.env_thread("threadIdx.x")`."""
        given = "" if type_is_int32(op.result.type) else f", {dtype(op.result.type)}"
        self.line(f"{self.names.define(op.result, op.var_name.data)} = T.env_thread({quoted(op.thread.data)}{given})")

    def print_launch(self, op: LaunchThreadOp) -> None:
        """`tx = T.launch_thread("threadIdx.x", 32)`."""
        text = self.launch_text(op)
        if op.env is not None:
            self.names.alias(op.result, op.env)
            self.line(text)
        else:
            self.line(f"{self.names.define(op.result, op.var_name.data)} = {text}")

    def print_nothing(self, op: Operation) -> None:
        """A terminator."""


def type_is_int32(type: Attribute) -> bool:
    """Returns whether a type is int32, which the text need not say."""
    from ...dialects.tir.types import I32

    return type == I32


def _contains_block(ops: Sequence[Operation]) -> bool:
    pending = list(ops)
    while pending:
        op = pending.pop()
        if isinstance(op, BlockOp):
            return True
        for region in op.regions:
            for block in region.blocks:
                pending += block.ops
    return False


_SCOPES = (AttrOp, AllocateOp, AllocateConstOp, DeclBufferOp, LaunchThreadOp, LetOp, RealizeOp, AssertOp)
_PRINTERS: dict[type[Operation], Callable[..., None]] = {
    LetOp: FunctionPrinter.print_let,
    VarOp: FunctionPrinter.print_var,
    StoreOp: FunctionPrinter.print_store,
    EvaluateOp: FunctionPrinter.print_evaluate,
    CallOp: FunctionPrinter.print_call,
    ForOp: FunctionPrinter.print_for,
    IfOp: FunctionPrinter.print_if,
    WhileOp: FunctionPrinter.print_while,
    AssertOp: FunctionPrinter.print_assert,
    BlockOp: FunctionPrinter.print_block,
    ReadsOp: FunctionPrinter.print_regions,
    WritesOp: FunctionPrinter.print_regions,
    InitOp: FunctionPrinter.print_init,
    MatchBufferOp: FunctionPrinter.print_buffer,
    AllocBufferOp: FunctionPrinter.print_buffer,
    DeclBufferOp: FunctionPrinter.print_buffer,
    AllocateOp: FunctionPrinter.print_allocate,
    AllocateConstOp: FunctionPrinter.print_allocate_const,
    ScopeOp: FunctionPrinter.print_scope,
    AttrOp: FunctionPrinter.print_attr,
    RealizeOp: FunctionPrinter.print_realize,
    PrefetchOp: FunctionPrinter.print_prefetch,
    EnvThreadOp: FunctionPrinter.print_env_thread,
    LaunchThreadOp: FunctionPrinter.print_launch,
    YieldOp: FunctionPrinter.print_nothing,
}


def _maker(var: VarOp) -> str:
    """`T.int32()`, `T.int64(is_size_var=True)`, `T.handle("float32")`."""
    type_ = annotation(var.result.type)
    # A handle that says what it points to is a call already.
    return type_ if type_.endswith(")") else f"{type_}({'is_size_var=True' if var.size_var else ''})"


def print_groups(groups: Sequence[Sequence[Operation]], module: ModuleOp) -> list[str]:
    """Prints each group of functions; the import lines precede the first."""
    callees: dict[str, str] = {}
    for op in module.ops:
        if isinstance(op, PrimFuncOp) and (name := module_of(op)) is not None:
            callees[op.sym_name.data] = f"{name}.{op.sym_name.data}"
    texts = [_print_group(group, module, callees) for group in groups]
    empty = _empty_modules(module, callees)
    classes = bool(callees or empty)
    header = f"{_IMPORT_IR}\n{_IMPORT_TIR}\n" if classes else f"{_IMPORT_TIR}\n"
    return [f"{header}\n{''.join(f'{e}' for e in empty)}{texts[0]}", *texts[1:]] if texts else []


def module_of(op: Operation) -> str | None:
    """The class that a function is printed in."""
    name = op.attributes.get("ir_module")
    return name.data if isinstance(name, StringAttr) else None


def _module_attributes(module: ModuleOp) -> dict[str, Attribute]:
    known = module.attributes.get("tir.ir_modules")
    return dict(known.data) if isinstance(known, DictionaryAttr) else {}


def _empty_modules(module: ModuleOp, callees: dict[str, str]) -> list[str]:
    """Classes that have attributes or nothing, but no function."""
    used = {name.partition(".")[0] for name in callees.values()}
    return [
        f"@I.ir_module\nclass {name}:\n{_module_head(attributes) or _TAB + 'pass'}\n\n"
        for name, attributes in _module_attributes(module).items()
        if name not in used
    ]


def _module_head(attributes: Attribute | None) -> str:
    if isinstance(attributes, DictionaryAttr) and attributes.data:
        return f"{_TAB}I.module_attrs({dictionary_text(attributes)})\n"
    return ""


def _print_group(group: Sequence[Operation], module: ModuleOp, callees: dict[str, str]) -> str:
    """Functions; neighbours of one class together."""
    parts: list[str] = []
    attributes = _module_attributes(module)
    current: str | None = None
    for op in group:
        if not isinstance(op, PrimFuncOp):
            raise error_at(op, f"'{op.name}' is not a prim_func")
        name = module_of(op)
        text = FunctionPrinter(op, callees).print(_TAB if name else "")
        if name is not None and name != current:
            head = _module_head(attributes.get(name))
            parts.append(f"@I.ir_module\nclass {name}:\n{head}{text}")
        else:
            parts.append(text)
        current = name
    return "\n\n".join(parts)
