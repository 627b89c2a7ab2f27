"""A `te.func` as text. What is read back is the same function, and is written the same way."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, IntegerAttr, NoneType, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import te, tir
from ...dialects.te.common_subexpr import EXPRESSIONS, shared_values
from ...dialects.tir.types import F32, I1, I32, I64, type_to_dtype
from ...support.diagnostics import error_at
from ...support.text import quoted
from ...support.walk import walk_ops
from .expr_printer import ExprPrinter, constant_of, explicit, index_types, number_text
from .names import LOOPS, globals_of_te
from .schedule_printer import SchedulePrinter, print_schedule

MOST_REPEATED = 64
"""How many nodes a body may repeat before its shared values get names."""

_LOOP_NAMES = {kind: name for name, kind in LOOPS.items()}


def print_function(op: Operation) -> str:
    """The text of a `te.func`, without a final newline."""
    assert isinstance(op, te.FuncOp)
    return _FunctionPrinter(op).print()


def marked_function(function: te.FuncOp) -> tuple[str, dict[Operation, int]]:
    """The text of a `te.func`, and the line, from 0, at which each of its definitions begins."""
    printer = _FunctionPrinter(function)
    return printer.print(), printer.lines_of


def print_schedule_of(op: te.ScheduleOp, function: te.FuncOp) -> str:
    """The text of a `te.schedule` item, whose function is `function`, without a final newline."""
    return _FunctionPrinter(function).scheduled(op)


class _FunctionPrinter:
    def __init__(self, function: te.FuncOp):
        self.function = function
        self.taken: set[str] = set(globals_of_te())
        # The last number tried after each name.
        self.numbers: dict[str, int] = {}
        self.names: dict[SSAValue, str] = {}
        self.exprs = ExprPrinter(self.names)
        self.lines: list[str] = []
        # The line, from 0, at which each definition begins.
        self.lines_of: dict[Operation, int] = {function: 1}
        # What the schedule that the function holds is called.
        self.schedule = ""

    def scheduled(self, op: te.ScheduleOp) -> str:
        """The text of a schedule of this function, with the names that its own text has."""
        self.print()
        return print_schedule(op, self.function, self.names, self._fresh)

    def print(self) -> str:
        function = self.function
        name = function.sym_name.data
        if not _is_name(name):
            raise error_at(function, f"a TE function called {name!r} has no text: the name is not a Python name")
        self._name_all()
        self.lines.append("@te.func(private=True)" if function.sym_visibility is not None else "@te.func")
        self.lines.append(f"def {name}():")
        if function.attrs.data:
            self._line(f"te.func_attr({attribute_text(function.attrs)})")
        shared = shared_values(function.body.block, MOST_REPEATED)
        for op in function.body.block.ops:
            self._definition(op, shared)
        return "\n".join(self.lines)

    def _line(self, text: str, depth: int = 1) -> None:
        self.lines.append("    " * depth + text)

    # Names -----------------------------------------------------------------------------------------------------------

    def _name_all(self) -> None:
        """Names for all that the function defines; none is hidden by an axis of a compute that uses it."""
        hidden: dict[SSAValue, set[str]] = {}
        block = self.function.body.block
        for op in block.ops:
            if not isinstance(op, te.ComputeOp):
                continue
            axes = {n.data for n in op.iter_names.data}
            for inner in walk_ops(op):
                for value in inner.operands if inner is not op else ():
                    if not isinstance(value.owner, Block) and value.owner.parent is block:
                        hidden.setdefault(value, set()).update(axes)
        for op in block.ops:
            if not isinstance(op, EXPRESSIONS):
                for result in op.results:
                    fallback = (
                        op.var_name.data if isinstance(op, tir.VarOp | te.ReduceAxisOp) else te.tensor_name(result)
                    )
                    self.names[result] = self._fresh(result.name_hint or fallback, hidden.get(result, ()))

    def _fresh(self, wanted: str, hidden: Iterable[str] = ()) -> str:
        base = "".join(c if c.isalnum() or c == "_" else "_" for c in wanted) or "v"
        base = base if _is_name(base) else f"v_{base}"
        name, number = base, self.numbers.get(base, 0)
        while name in self.taken or name in hidden or not _is_name(name):
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        self.numbers[base] = number
        return name

    # Definitions -----------------------------------------------------------------------------------------------------

    def _definition(self, op: Operation, shared: set[SSAValue]) -> None:
        self.lines_of[op] = len(self.lines)
        match op:
            case tir.VarOp():
                kind = "size_var" if op.size_var is not None else "var"
                dtype = "" if op.result.type == I32 else f', "{type_to_dtype(op.result.type)}"'
                self._line(f"{self.names[op.result]} = te.{kind}({quoted(op.var_name.data)}{dtype})")
            case te.PlaceholderOp():
                dtype = "" if op.result.type.dtype == F32 else f'dtype="{type_to_dtype(op.result.type.dtype)}", '
                shape = self._shape(op.result)
                self._line(f"{self.names[op.result]} = te.placeholder({shape}, {dtype}name={quoted(op.var_name.data)})")
            case te.ReduceAxisOp():
                bounds = self._bounds(op.min, op.extent)
                self._line(f"{self.names[op.result]} = te.reduce_axis(({bounds}), name={quoted(op.var_name.data)})")
            case te.CommReducerOp():
                self._comm_reducer(op)
            case te.ComputeOp():
                self._compute(op)
            case te.ScanOp():
                self._scan(op)
            case te.ExternOp():
                self._extern(op)
            case te.ScheduleOp():
                self.schedule = self._fresh("s")
                printer = SchedulePrinter(self.function, self.names, self.schedule, self._fresh, self._line)
                self._line(f"{self.schedule} = te.create_schedule({printer.outputs(op)})")
                printer.print(op)
            case te.ReturnOp():
                schedule = f"{self.schedule}, " if self.schedule else ""
                self._line(f"return {schedule}[{', '.join(self.exprs.text(v) for v in op.values)}]")
            case _ if isinstance(op, EXPRESSIONS):
                if op.results and op.results[0] in shared:
                    text = self.exprs.text(op.results[0])
                    self.names[op.results[0]] = self._fresh(op.results[0].name_hint or "e")
                    self._line(f"{self.names[op.results[0]]} = {text}")
            case _:
                raise self.exprs.refuse(op)

    def _targets(self, op: Operation) -> str:
        return ", ".join(self.names[r] for r in op.results)

    def _shape(self, tensor: SSAValue) -> str:
        return tuple_text([self._extent(e) for e in te.extents_of(tensor)])

    def _extent(self, extent: IntegerAttr | SSAValue) -> str:
        if isinstance(extent, SSAValue):
            return self.exprs.text(extent)
        return number_text(extent) if extent.type == I32 else explicit(extent)

    def _bounds(self, low: SSAValue, extent: SSAValue) -> str:
        """The text of low and low + extent, such that extent is read from it."""
        constant, length = constant_of(low), constant_of(extent)
        zero = constant is not None and isinstance(constant.value, IntegerAttr) and constant.value.value.data == 0
        if zero:
            # A Python int takes the other side's dtype here.
            text = number_text(length.value) if length is not None and extent.type == I32 else self.exprs.text(extent)  # type: ignore[arg-type]
            return f"0, {text}"
        if constant is not None and length is not None and isinstance(constant.value, IntegerAttr):
            end = IntegerAttr(constant.value.value.data + length.value.value.data, low.type)  # type: ignore[union-attr,arg-type]
            spell = number_text if low.type == I32 else explicit
            return f"{spell(constant.value)}, {spell(end)}"
        if isinstance(extent.owner, tir.SubOp) and extent.owner.rhs is low:
            return f"{self.exprs.text(low)}, {self.exprs.adapted(extent.owner.lhs, low)}"
        return f"{self.exprs.text(low)}, {self.exprs.adapted(low, extent, 9)} + {self.exprs.adapted(extent, low, 10)}"

    def _extras(self, tag: StringAttr, attrs: DictionaryAttr, layout_free: Sequence[SSAValue] = ()) -> str:
        text = f", tag={quoted(tag.data)}" if tag.data else ""
        entries = [f"{quoted(key)}: {attribute_text(value)}" for key, value in attrs.data.items()]
        if layout_free:
            entries.append(f'"layout_free_placeholders": [{", ".join(self.names[v] for v in layout_free)}]')
        return text + (f", attrs={{{', '.join(entries)}}}" if entries else "")

    def _comm_reducer(self, op: te.CommReducerOp) -> None:
        count = len(op.dtypes)
        args = op.combiner.block.args
        captured = {self.names[v] for inner in walk_ops(op) for v in inner.operands if v in self.names}
        x, y = ("x" if "x" not in captured else "lhs_"), ("y" if "y" not in captured else "rhs_")
        for index, arg in enumerate(args):
            side = x if index < count else y
            self.names[arg] = side if count == 1 else f"{side}[{index % count}]"
        results = [self.exprs.text(v) for v in _yielded(op.combiner.block)]
        neutral = [self._identity(v) for v in _yielded(op.identity.block)]
        dtypes = ", ".join(f"t{i}" for i in range(count)) if count > 1 else "t"
        combine = f"lambda {x}, {y}: {results[0] if count == 1 else tuple_text(results)}"
        identity = f"lambda {dtypes}: {neutral[0] if count == 1 else tuple_text(neutral)}"
        self._line(
            f"{self.names[op.result]} = te.comm_reducer({combine}, {identity}, name={quoted(op.reducer_name.data)})"
        )

    def _identity(self, value: SSAValue) -> str:
        constant = constant_of(value)
        if constant is None or isinstance(constant.value, StringAttr):
            return self.exprs.text(value)
        dtype, number = type_to_dtype(value.type), constant.value.value.data
        from ...dialects.tir.node import FLOAT_LIMITS, INT_LIMITS

        low, high = INT_LIMITS.get(dtype) or (-FLOAT_LIMITS[dtype], FLOAT_LIMITS[dtype])
        if number in (low, high) and dtype != "bool" and number:
            return f'te.{"min" if number == low else "max"}_value("{dtype}")'
        return explicit(constant.value)

    def _compute(self, op: te.ComputeOp) -> None:
        names = [n.data for n in op.iter_names.data]
        plain = all(map(_is_name, names)) and len(set(names)) == len(names) and not set(names) & set(globals_of_te())
        if plain:
            params, extra = ", ".join(names), ""
            self.names.update(zip(op.axes, names, strict=True))
        else:
            rest = self._fresh("axes")
            params, extra = f"*{rest}", f", varargs_names=[{', '.join(map(quoted, names))}]"
            self.names.update((axis, f"{rest}[{i}]") for i, axis in enumerate(op.axes))
        params = f"lambda {params}" if params else "lambda"
        shared = shared_values(op.body.block, MOST_REPEATED)
        body = self._body(op, shared, set(names)) if shared else None
        if body is None:
            function = f"{params}: {self._values(op)}"
        else:
            function = self._fresh(f"{op.compute_name.data}_body")
            self._line(f"def {function}({params.removeprefix('lambda').strip()}):")
            for line in body:
                self._line(line, 2)
        extras = self._extras(op.tag, op.attrs, op.layout_free)
        name = quoted(op.compute_name.data)
        self._line(
            f"{self._targets(op)} = te.compute({self._shape(op.results[0])}, {function}, name={name}{extras}{extra})"
        )

    def _body(self, op: te.ComputeOp, shared: set[SSAValue], axes: set[str]) -> list[str]:
        """The body with a name for each shared value."""
        lines: list[str] = []
        count = 0

        def visit(block: Block) -> None:
            nonlocal count
            for inner in block.ops:
                for region in inner.regions:
                    visit(region.block)
                if inner.results and inner.results[0] in shared:
                    text = self.exprs.text(inner.results[0])
                    while f"t{count}" in self.taken or f"t{count}" in axes:
                        count += 1
                    self.names[inner.results[0]] = f"t{count}"
                    count += 1
                    lines.append(f"{self.names[inner.results[0]]} = {text}")

        visit(op.body.block)
        return [*lines, f"return {self._values(op)}"]

    def _values(self, op: te.ComputeOp) -> str:
        reduction = op.reduction
        if reduction is not None:
            return self._reduction(reduction)
        texts = [self.exprs.text(v) for v in op.values]
        return texts[0] if len(texts) == 1 else tuple_text(texts)

    def _reduction(self, op: te.ReduceOp) -> str:
        sources = [self.exprs.text(s) for s in op.sources]
        callee = f"te.{op.kind.data}" if op.reducer is None else self.names[op.reducer]
        axes = [self.names[a] for a in op.axes]
        parts = [
            sources[0] if len(sources) == 1 else tuple_text(sources),
            f"axis={axes[0] if len(axes) == 1 else '[' + ', '.join(axes) + ']'}",
        ]
        if op.condition is not None:
            parts.append(f"where={self.exprs.text(op.condition)}")
        if op.init:
            init = [self.exprs.text(v) for v in op.init]
            parts.append(f"init={init[0] if len(init) == 1 else tuple_text(init)}")
        return f"{callee}({', '.join(parts)})"

    def _scan(self, op: te.ScanOp) -> None:
        groups = [[self.names[v] for v in group] for group in (op.init, op.update, op.state)]
        texts = [g[0] if len(g) == 1 else f"[{', '.join(g)}]" for g in groups]
        if op.inputs:
            texts.append(f"inputs=[{', '.join(self.names[v] for v in op.inputs)}]")
        texts.append(f"name={quoted(op.scan_name.data)}")
        self._line(f"{self._targets(op)} = te.scan({', '.join(texts)}{self._extras(op.tag, op.attrs)})")

    # Externs ---------------------------------------------------------------------------------------------------------

    def _extern(self, op: te.ExternOp) -> None:
        captured = {self.names[v] for inner in walk_ops(op) for v in inner.operands if v in self.names}
        ins, outs = (n if n not in captured else f"{n}_" for n in ("ins", "outs"))
        count = len(op.inputs)
        for index, arg in enumerate(op.body.block.args):
            self.names[arg] = f"{ins}[{index}]" if index < count else f"{outs}[{index - count}]"
        statements = [s for s in op.body.block.ops if not isinstance(s, (*EXPRESSIONS, tir.LoadOp, tir.BufferGetOp))]
        if len(statements) == 1 and isinstance(statements[0], tir.EvaluateOp):
            function = f"lambda {ins}, {outs}: {self.exprs.text(statements[0].value)}"
        elif not statements:
            function = f"lambda {ins}, {outs}: []"
        else:
            function = self._fresh(f"{op.extern_name.data}_body")
            self._line(f"def {function}({ins}, {outs}):")
            self._statements(op.body.block, 2, captured | {ins, outs})
        shapes = [self._shape(r) for r in op.results]
        dtypes = [type_to_dtype(r.type.dtype) for r in op.results_]
        given = {type_to_dtype(v.type.dtype) for v in op.inputs if isinstance(v.type, te.TensorType)}
        dtype = "" if len(given) == 1 and given == set(dtypes) else f", dtype=[{', '.join(map(quoted, dtypes))}]"
        shape = shapes[0] if len(shapes) == 1 else f"[{', '.join(shapes)}]"
        inputs = ", ".join(self.names[v] for v in op.inputs)
        extras = self._extras(op.tag, op.attrs)
        self._line(
            f"{self._targets(op)} = te.extern({shape}, [{inputs}], {function}, name={quoted(op.extern_name.data)}{dtype}{extras})"
        )

    def _statements(self, block: Block, depth: int, names: set[str]) -> None:
        start = len(self.lines)
        for op in block.ops:
            match op:
                case tir.EvaluateOp():
                    self._line(self.exprs.text(op.value), depth)
                case tir.StoreOp():
                    types = index_types(op.buffer)
                    indices = ", ".join(self.exprs.index(i, t) for i, t in zip(op.indices, types, strict=True)) or "()"
                    self._line(f"{self.exprs.text(op.buffer)}[{indices}] = {self.exprs.stored(op.value)}", depth)
                case tir.ForOp():
                    self._loop(op, depth, names)
                case tir.DeclBufferOp() if op.source is None:
                    self._allocate(op, depth)
                case tir.IfOp():
                    self._line(f"if {self.exprs.text(op.condition)}:", depth)
                    self._statements(op.then_region.block, depth + 1, names)
                    if op.else_region.blocks:
                        self._line("else:", depth)
                        self._statements(op.else_region.block, depth + 1, names)
                case _ if isinstance(op, (*EXPRESSIONS, tir.LoadOp, tir.BufferGetOp)):
                    pass
                case _:
                    raise self.exprs.refuse(op)
        if len(self.lines) == start:
            self._line("pass", depth)

    def _allocate(self, op: tir.DeclBufferOp, depth: int) -> None:
        type = op.result.type
        shape = tuple_text([str(e) if isinstance(e, int) else self.exprs.text(e) for e in op.extents()])
        self.names[op.result] = self._fresh(op.result.name_hint or op.var_name.data)
        parts = (
            f"{shape}, {quoted(type_to_dtype(type.dtype))}, {quoted(type.scope.data)}, name={quoted(op.var_name.data)}"
        )
        self._line(f"{self.names[op.result]} = te.allocate({parts})", depth)

    def _loop(self, op: tir.ForOp, depth: int, names: set[str]) -> None:
        if op.kind.data not in _LOOP_NAMES or op.annotations.data:
            raise self.exprs.refuse(op)
        name = op.var_name.data if _is_name(op.var_name.data) else "i"
        number = 0
        while name in names or name in globals_of_te():
            number += 1
            name = f"{op.var_name.data}_{number}"
        self.names[op.loop_var] = name
        bounds = self._bounds(op.min, op.extent).removeprefix("0, ")
        callee = "range" if op.kind.data == "serial" else f"T.{_LOOP_NAMES[op.kind.data]}"
        self._line(f"for {name} in {callee}({bounds}):", depth)
        self._statements(op.body.block, depth + 1, names | {name})


def _is_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def _yielded(block: Block) -> Sequence[SSAValue]:
    last = block.last_op
    return last.values if isinstance(last, tir.YieldOp) else ()


def tuple_text(items: Sequence[str]) -> str:
    """A tuple of Python."""
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def attribute_text(attribute: Attribute) -> str:
    """An attribute as Python: what `attribute_of` of the emitter makes the attribute from."""
    match attribute:
        case NoneType():
            return "None"
        case StringAttr():
            return quoted(attribute.data)
        case IntegerAttr():
            return number_text(attribute) if attribute.type in (I1, I64) else explicit(attribute)
        case FloatAttr():
            if type_to_dtype(attribute.type) == "float64":
                text = number_text(attribute)
                return text
            return explicit(attribute)
        case ArrayAttr():
            return f"[{', '.join(attribute_text(a) for a in attribute.data)}]"
        case DictionaryAttr():
            return (
                f"{{{', '.join(f'{quoted(key)}: {attribute_text(value)}' for key, value in attribute.data.items())}}}"
            )
        case _:
            raise error_at(None, f"the attribute {attribute} has no TE text", "print the module with '-t mlir'")
