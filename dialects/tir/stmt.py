"""Defines TIR's statements: functions, loops, blocks, branches, scopes of attributes and memory.

A statement that in TVM holds "the rest" as its body (allocate, attr, let, launch_thread, assert, realize) is a flat op
here: it acts until the end of its region. Where the text ends such a scope early (`with …:` followed
by more statements), the scope is a `tir.scope` region.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, NoneType, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import IsolatedFromAbove, MemoryWriteEffect, NoTerminator, RecursiveMemoryEffect, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from ...support.text import counted
from ..assembly import (
    FunctionForm,
    parse_attributes,
    parse_operand_types,
    parse_optional,
    parse_values,
    print_attributes,
    print_body,
    print_optional,
    print_types,
    print_values,
    resolve,
)
from ..interned import i32_array, string
from ..plain_op import SEGMENTS, PlainOp, value_of
from .buffer import NO_ATTRS, check_size
from .types import I1, I32, BufferType, RegionType, TokenType, type_to_dtype

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer


@irdl_op_definition
class PrimFuncOp(FunctionForm):
    """`@T.prim_func def f(A: T.Buffer(…), n: T.int32)`: parameters are buffers, handles and scalars.

    `attrs` is the dictionary of `T.func_attr` (without `global_symbol`, when that equals the name). `ret_type` is NoneType
    for a function that returns nothing.
    """

    name = "tir.prim_func"
    sym_name = prop_def(StringAttr)
    sym_visibility = opt_prop_def(StringAttr)
    param_names = prop_def(ArrayAttr[StringAttr])
    attrs = prop_def(DictionaryAttr, default_value=NO_ATTRS)
    ret_type = prop_def(Attribute, default_value=NoneType())
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface(), NoTerminator())

    def __init__(
        self,
        name: str,
        param_names: Sequence[str],
        param_types: Sequence[Attribute],
        *,
        attrs: DictionaryAttr = NO_ATTRS,
        ret_type: Attribute | None = None,
        private: bool = False,
    ):
        properties: dict[str, Attribute] = {
            "sym_name": string(name),
            "param_names": ArrayAttr([string(n) for n in param_names]),
            "attrs": attrs,
            "ret_type": ret_type or NoneType(),
        }
        if private:
            properties["sym_visibility"] = StringAttr("private")
        super().__init__(properties=properties, regions=[Region(Block(arg_types=param_types))])

    @property
    def params(self) -> Sequence[SSAValue]:
        """Returns the parameters as values, in order."""
        return self.body.block.args

    def verify_(self) -> None:
        if len(self.param_names.data) != len(self.params):
            raise VerifyException(
                f"function '{self.sym_name.data}' has {counted(len(self.params), 'parameter')} and {counted(len(self.param_names.data), 'name')}"
            )
        for name, param in zip(self.param_names.data, self.params, strict=True):
            if isinstance(param.type, BufferType) and param.type.static_shape is None:
                raise VerifyException(
                    f"parameter '{name.data}' has a symbolic shape: take a T.handle and T.match_buffer it"
                )
            if isinstance(param.type, BufferType):
                check_size(name.data, param.type)


@irdl_op_definition
class ForOp(PlainOp):
    """`for i in range(…)`, `T.serial`, `T.parallel`, `T.vectorized`, `T.unroll`, `T.thread_binding(…)`.

    The region's argument runs from `min` over `extent` values. `kind` is TVM's: serial, parallel, vectorized, unrolled
    or thread_binding, the last with `thread`. With `var`, the loop's variable is that `tir.var`, to which an attribute
    outside refers (`T.attr(i, "pragma_…", 1)`).
    """

    name = "tir.for"
    min = operand_def()
    extent = operand_def()
    var = opt_operand_def()
    var_name = prop_def(StringAttr)
    kind = prop_def(StringAttr)
    thread = opt_prop_def(StringAttr)
    annotations = prop_def(DictionaryAttr, default_value=NO_ATTRS)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    KINDS: ClassVar[tuple[str, ...]] = ("serial", "parallel", "vectorized", "unrolled", "thread_binding")

    def __init__(
        self,
        var_name: str,
        min: SSAValue | Operation,
        extent: SSAValue | Operation,
        *,
        kind: str = "serial",
        thread: str | None = None,
        annotations: DictionaryAttr = NO_ATTRS,
        body: Region | None = None,
        var: SSAValue | Operation | None = None,
    ):
        extent = value_of(extent)
        properties: dict[str, Attribute] = {
            "var_name": string(var_name),
            "kind": string(kind),
            "annotations": annotations,
        }
        if thread is not None:
            properties["thread"] = string(thread)
        super().__init__(
            operands=[min, extent, [] if var is None else [var]],
            properties=properties,
            regions=[body or Region(Block(arg_types=[extent.type]))],
        )

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        name = string(parser.parse_str_literal())
        variable = parser.parse_argument(expect_type=False)
        parser.parse_keyword("in")
        parser.parse_punctuation("(")
        bounds = parse_values(parser)
        parser.parse_punctuation(")")
        parser.parse_punctuation(":")
        types = parse_operand_types(parser) or [parser.parse_type()] * 3
        kind = string(parser.parse_optional_str_literal() or parser.parse_identifier())
        var = parse_optional(parser, "of")
        properties, attributes = parse_attributes(parser, cls, keyword=True)
        body = parser.parse_region([variable.resolve(types[2])])
        return cls.create(
            operands=[*resolve(parser, bounds, types[:2]), *var],
            properties={"var_name": name, "kind": kind, **properties},
            attributes=attributes,
            regions=[body],
        )

    def print(self, printer: Printer) -> None:
        """Prints `tir.for "i" %i in (%min, %extent) : i32 serial { … }`."""
        variable = self.body.block.args[0]
        types = [self.min.type, self.extent.type, variable.type]
        printer.print_string(" ")
        printer.print_string_literal(self.var_name.data)
        printer.print_string(" ")
        printer.print_block_argument(variable, print_type=False)
        printer.print_string(" in (")
        print_values(printer, (self.min, self.extent))
        printer.print_string(") : ")
        if len(set(types)) == 1:
            printer.print_attribute(types[0])
        else:
            printer.print_string("(")
            print_types(printer, types)
            printer.print_string(")")
        printer.print_string(" ")
        if self.kind.data in self.KINDS:
            printer.print_string(self.kind.data)
        else:
            printer.print_string_literal(self.kind.data)
        print_optional(printer, "of", self.var)
        print_attributes(printer, self, ("var_name", "kind"), keyword=True)
        printer.print_string(" ")
        print_body(printer, self.body)

    @property
    def loop_var(self) -> SSAValue:
        """Returns the loop variable, of the extent's dtype."""
        return self.body.block.args[0]

    def verify_(self) -> None:
        name, kind = self.var_name.data, self.kind.data
        if kind not in self.KINDS:
            raise VerifyException(f"loop '{name}' has the unknown kind '{kind}'; a loop is {', '.join(self.KINDS)}")
        if (kind == "thread_binding") != (self.thread is not None):
            raise VerifyException(
                f"loop '{name}' is {'bound to no thread' if self.thread is None else 'not thread_binding, yet names a thread'}"
            )
        types = {self.min.type, self.extent.type, self.loop_var.type}
        if len(types) != 1:
            raise VerifyException(
                f"loop '{name}': start, extent and variable have different dtypes: {', '.join(sorted(map(type_to_dtype, types)))}"
            )


ITER_TYPES = {"S": "spatial", "R": "reduce", "scan": "scan", "opaque": "opaque"}


class _Axis(NamedTuple):
    """An axis of a block as the text has it: `"vi" S %vi in (%min, %extent) = %i : i32`."""

    name: StringAttr
    kind: StringAttr
    variable: Parser.Argument
    values: Sequence[SSAValue]
    """Minimum, extent and binding."""

    @classmethod
    def parse(cls, parser: Parser) -> _Axis:
        name = string(parser.parse_str_literal())
        kind = string(parser.parse_optional_str_literal() or parser.parse_identifier())
        variable = parser.parse_argument(expect_type=False)
        parser.parse_keyword("in")
        parser.parse_punctuation("(")
        values = parse_values(parser)
        parser.parse_punctuation(")")
        parser.parse_punctuation("=")
        values.append(parser.parse_unresolved_operand())
        parser.parse_punctuation(":")
        types = parse_operand_types(parser) or [parser.parse_type()] * 4
        return cls(name, kind, variable.resolve(types[3]), resolve(parser, values, types[:3]))

    @staticmethod
    def print(
        printer: Printer, name: StringAttr, kind: StringAttr, variable: BlockArgument, values: Sequence[SSAValue]
    ) -> None:
        """Prints an axis; all types are written where they differ."""
        printer.print_string_literal(name.data)
        printer.print_string(" ")
        if kind.data in ITER_TYPES:
            printer.print_string(kind.data)
        else:
            printer.print_string_literal(kind.data)
        printer.print_string(" ")
        printer.print_block_argument(variable, print_type=False)
        printer.print_string(" in (")
        print_values(printer, values[:2])
        printer.print_string(") = ")
        printer.print_operand(values[2])
        printer.print_string(" : ")
        types = [*(value.type for value in values), variable.type]
        if len(set(types)) == 1:
            printer.print_attribute(types[0])
        else:
            printer.print_string("(")
            print_types(printer, types)
            printer.print_string(")")


@irdl_op_definition
class BlockOp(PlainOp):
    """`with T.block("C"):`: a computation over iteration variables, bound to values of the outer loops.

    Iteration variable k (the region's argument k) is named `iter_names[k]`, has kind `iter_types[k]` ("S" spatial,
    "R" reduce, "scan", "opaque"), runs over `dom_mins[k]`, `dom_extents[k]` and is bound to `bindings[k]`. Where
    `predicate` (`T.where`) is false the instance does not run. The body may begin with `tir.reads` and `tir.writes`,
    `tir.alloc_buffer`, `tir.match_buffer` and one `tir.init`; `annotations` is `T.block_attr`.
    """

    name = "tir.block"
    dom_mins = var_operand_def()
    dom_extents = var_operand_def()
    bindings = var_operand_def()
    predicate = opt_operand_def()
    block_name = prop_def(StringAttr)
    iter_names = prop_def(ArrayAttr[StringAttr])
    iter_types = prop_def(ArrayAttr[StringAttr])
    annotations = prop_def(DictionaryAttr, default_value=NO_ATTRS)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        name: str,
        iter_names: Sequence[str],
        iter_types: Sequence[str],
        dom_mins: Sequence[SSAValue | Operation],
        dom_extents: Sequence[SSAValue | Operation],
        bindings: Sequence[SSAValue | Operation],
        *,
        predicate: SSAValue | Operation | None = None,
        annotations: DictionaryAttr = NO_ATTRS,
        body: Region | None = None,
    ):
        extents = [value_of(e) for e in dom_extents]
        super().__init__(
            operands=[list(dom_mins), extents, list(bindings), [] if predicate is None else [predicate]],
            properties={
                "block_name": string(name),
                "iter_names": ArrayAttr([string(n) for n in iter_names]),
                "iter_types": ArrayAttr([string(t) for t in iter_types]),
                "annotations": annotations,
            },
            regions=[body or Region(Block(arg_types=[e.type for e in extents]))],
        )

    @classmethod
    def parse(cls, parser: Parser) -> BlockOp:
        name = string(parser.parse_str_literal())
        axes: list[_Axis] = []
        parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: axes.append(_Axis.parse(parser)))
        predicate = parse_optional(parser, "where")
        properties, attributes = parse_attributes(parser, cls, keyword=True)
        body = parser.parse_region([axis.variable for axis in axes])
        properties[SEGMENTS] = i32_array(len(axes), len(axes), len(axes), len(predicate))
        return cls.create(
            operands=[
                *(value for values in zip(*(axis.values for axis in axes), strict=True) for value in values),
                *predicate,
            ],
            properties={
                "block_name": name,
                "iter_names": ArrayAttr([axis.name for axis in axes]),
                "iter_types": ArrayAttr([axis.kind for axis in axes]),
                **properties,
            },
            attributes=attributes,
            regions=[body],
        )

    def print(self, printer: Printer) -> None:
        """Prints `tir.block "C"("vi" S %vi in (%min, %extent) = %i : i32, …) where %p : i1 { … }`."""
        printer.print_string(" ")
        printer.print_string_literal(self.block_name.data)
        printer.print_string("(")
        groups = (
            self.iter_names.data,
            self.iter_types.data,
            self.iter_vars,
            self.dom_mins,
            self.dom_extents,
            self.bindings,
        )
        for index, (name, kind, variable, *values) in enumerate(zip(*groups, strict=True)):
            printer.print_string(", " if index else "")
            _Axis.print(printer, name, kind, variable, values)
        printer.print_string(")")
        print_optional(printer, "where", self.predicate)
        print_attributes(printer, self, ("block_name", "iter_names", "iter_types"), keyword=True)
        printer.print_string(" ")
        print_body(printer, self.body)

    @property
    def iter_vars(self) -> Sequence[SSAValue]:
        """Returns the iteration variables, in order."""
        return self.body.block.args

    def find(self, kind: type[Operation]) -> Operation | None:
        """Returns the first op of this kind directly in the body: its `tir.reads`, `tir.writes` or `tir.init`."""
        op = self.body.block.first_op
        while op is not None and type(op) is not kind:
            op = op.next_op
        return op

    def verify_(self) -> None:
        name, count = self.block_name.data, len(self.iter_vars)
        groups = (self.iter_names.data, self.iter_types.data, self.dom_mins, self.dom_extents, self.bindings)
        if any(len(group) != count for group in groups):
            raise VerifyException(
                f"block '{name}' has {counted(count, 'axis')}, but not as many names, kinds, domains and bindings"
            )
        for iter_name, iter_type in zip(self.iter_names.data, self.iter_types.data, strict=True):
            if iter_type.data not in ITER_TYPES:
                raise VerifyException(
                    f"axis '{iter_name.data}' of block '{name}' has the unknown kind '{iter_type.data}'"
                )
        for iter_name, var, extent, binding in zip(
            self.iter_names.data, self.iter_vars, self.dom_extents, self.bindings, strict=True
        ):
            if not var.type == extent.type == binding.type:
                raise VerifyException(
                    f"axis '{iter_name.data}' of block '{name}' has a domain of dtype {type_to_dtype(extent.type)}, but is bound to a value of dtype {type_to_dtype(binding.type)}"
                )
        if self.predicate is not None and self.predicate.type != I1:
            raise VerifyException(
                f"the T.where of block '{name}' must be bool, not {type_to_dtype(self.predicate.type)}"
            )


class RegionsOp(PlainOp):
    """A list of regions at the head of a block."""

    regions_ = var_operand_def(RegionType)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "`[` $regions_ `]` attr-dict (`:` type($regions_)^)?"

    def __init__(self, *regions: SSAValue | Operation):
        super().__init__(operands=[list(regions)])


@irdl_op_definition
class ReadsOp(RegionsOp):
    """`T.reads(A[i, j], B[0:4])`: the regions that the block may read, except those it has just written."""

    name = "tir.reads"


@irdl_op_definition
class WritesOp(RegionsOp):
    """`T.writes(C[i, j])`: all that the block may write."""

    name = "tir.writes"


class _BodyOp(PlainOp):
    """Statements in one block, without a terminator."""

    assembly_format = "$body attr-dict-with-keyword"
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, body: Region | None = None):
        super().__init__(regions=[body or Region(Block())])


@irdl_op_definition
class InitOp(_BodyOp):
    """`with T.init():` runs before the update where all reduction axes are at the start of their domains.

    That is `if vk == 0:` for each of them: once for each element of the spatial axes.
    """

    name = "tir.init"


@irdl_op_definition
class ScopeOp(_BodyOp):
    """A scope that ends before its region: `with T.allocate(…) as p:`, `with T.attr(…):` followed by more."""

    name = "tir.scope"


@irdl_op_definition
class IfOp(PlainOp):
    """`if condition: … else: …`; the second region is empty (no block) without an else."""

    name = "tir.if"
    condition = operand_def()
    then_region = region_def("single_block")
    else_region = region_def()
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(
        self, condition: SSAValue | Operation, then_region: Region | None = None, else_region: Region | None = None
    ):
        super().__init__(operands=[condition], regions=[then_region or Region(Block()), else_region or Region()])

    @classmethod
    def parse(cls, parser: Parser) -> IfOp:
        condition = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        properties, attributes = parse_attributes(parser, cls, keyword=True)
        regions = [parser.parse_region()]
        regions.append(parser.parse_region() if parser.parse_optional_keyword("else") is not None else Region())
        return cls.create(
            operands=[parser.resolve_operand(condition, type)],
            properties=properties,
            attributes=attributes,
            regions=regions,
        )

    def print(self, printer: Printer) -> None:
        """Prints `tir.if %condition : i1 { … } else { … }`."""
        printer.print_string(" ")
        printer.print_operand(self.condition)
        printer.print_string(" : ")
        printer.print_attribute(self.condition.type)
        print_attributes(printer, self, keyword=True)
        printer.print_string(" ")
        printer.print_region(self.then_region)
        if self.else_region.blocks:
            printer.print_string(" else ")
            printer.print_region(self.else_region)

    def verify_(self) -> None:
        if self.condition.type != I1:
            raise VerifyException(f"the condition of 'if' must be bool, not {type_to_dtype(self.condition.type)}")


@irdl_op_definition
class WhileOp(PlainOp):
    """`while condition: …`: the first region yields the condition, evaluated before each iteration."""

    name = "tir.while"
    assembly_format = "$condition `do` $body attr-dict-with-keyword"
    condition = region_def("single_block")
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, condition: Region, body: Region | None = None):
        super().__init__(regions=[condition, body or Region(Block())])


@irdl_op_definition
class AssertOp(PlainOp):
    """`assert condition, "message"`: a false condition stops the program with the message."""

    name = "tir.assert"
    assembly_format = "$condition `,` $message attr-dict `:` type($condition)"
    condition = operand_def()
    message = prop_def(StringAttr)
    traits = traits_def(MemoryWriteEffect())

    def __init__(self, condition: SSAValue | Operation, message: str):
        super().__init__(operands=[condition], properties={"message": string(message)})

    def verify_(self) -> None:
        if self.condition.type != I1:
            raise VerifyException(f"the condition of 'assert' must be bool, not {type_to_dtype(self.condition.type)}")


@irdl_op_definition
class EvaluateOp(PlainOp):
    """`T.evaluate(x)`: an expression computed for its effects. `T.ret(x)` is a `tir.call` evaluated so."""

    name = "tir.evaluate"
    assembly_format = "$value attr-dict `:` type($value)"
    value = operand_def()
    traits = traits_def(MemoryWriteEffect())

    def __init__(self, value: SSAValue | Operation):
        super().__init__(operands=[value])


@irdl_op_definition
class AttrOp(PlainOp):
    """`T.attr(node, "key", value)`: an attribute of the rest of the region."""

    name = "tir.attr"
    assembly_format = "$node `,` $key `,` $value attr-dict `:` type($node) `,` type($value)"
    node = operand_def()
    value = operand_def()
    key = prop_def(StringAttr)
    traits = traits_def(MemoryWriteEffect())

    def __init__(self, node: SSAValue | Operation, key: str, value: SSAValue | Operation):
        super().__init__(operands=[node, value], properties={"key": StringAttr(key)})


@irdl_op_definition
class IterVarOp(PlainOp):
    """`T.iter_var(v, T.Range(0, n), "ThreadIndex", "threadIdx.x")`, as the node of an attribute.

    `iter_type` is TVM's name of the kind; without a range it has no operands but the variable.
    """

    name = "tir.iter_var"
    assembly_format = (
        "$var `,` $iter_type `,` $thread_tag (`in` $dom^ `:` type($dom))? attr-dict `:` type($var) `->` type($result)"
    )
    var = operand_def()
    dom = var_operand_def()
    iter_type = prop_def(StringAttr)
    thread_tag = prop_def(StringAttr)
    result = result_def(TokenType)
    traits = traits_def()

    def __init__(self, var: SSAValue | Operation, dom: Sequence[SSAValue | Operation], iter_type: str, thread_tag: str):
        super().__init__(
            operands=[var, list(dom)],
            properties={"iter_type": StringAttr(iter_type), "thread_tag": StringAttr(thread_tag)},
            result_types=[TokenType()],
        )

    def verify_(self) -> None:
        if len(self.dom) not in (0, 2):
            raise VerifyException("T.iter_var takes a T.Range of a start and an extent, or None")


@irdl_op_definition
class TargetOp(PlainOp):
    """`T.target({…})` or `T.target("llvm")`, as the node of an attribute."""

    name = "tir.target"
    assembly_format = "$config attr-dict `->` type($result)"
    config = prop_def(Attribute)
    result = result_def(TokenType)
    traits = traits_def()

    def __init__(self, config: Attribute):
        super().__init__(properties={"config": config}, result_types=[TokenType()])


@irdl_op_definition
class EnvThreadOp(PlainOp):
    """`tx = T.env_thread("threadIdx.x")`: a thread variable, launched later."""

    name = "tir.env_thread"
    assembly_format = "$var_name `,` $thread attr-dict `:` type($result)"
    var_name = prop_def(StringAttr)
    thread = prop_def(StringAttr)
    result = result_def()
    traits = traits_def()

    def __init__(self, name: str, thread: str, type: Attribute = I32):
        super().__init__(properties={"var_name": string(name), "thread": string(thread)}, result_types=[type])


@irdl_op_definition
class LaunchThreadOp(PlainOp):
    """`tx = T.launch_thread("threadIdx.x", 32)`: the rest of the region runs on that many threads.

    With `env` (the value of a `tir.env_thread`) it launches that variable; its own result is then the same variable.
    """

    name = "tir.launch_thread"
    assembly_format = (
        "$var_name `,` $thread `,` $extent (`env` $env^ `:` type($env))? attr-dict `:` type($extent) `->` type($result)"
    )
    env = opt_operand_def()
    extent = operand_def()
    var_name = prop_def(StringAttr)
    thread = prop_def(StringAttr)
    result = result_def()
    traits = traits_def(MemoryWriteEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(self, name: str, thread: str, extent: SSAValue | Operation, env: SSAValue | Operation | None = None):
        extent = SSAValue.get(extent)
        super().__init__(
            operands=[[] if env is None else [env], extent],
            properties={"var_name": string(name), "thread": string(thread)},
            result_types=[extent.type],
        )


@irdl_op_definition
class RealizeOp(PlainOp):
    """`T.realize(A[0:16], "global")`: a buffer's memory for the rest of the region, of older lowering.

    With `producer` it is `T.ProducerRealize(A[0:16], condition)`, of a tensor that is not yet a buffer.
    """

    name = "tir.realize"
    assembly_format = "$region (`if` $condition^ `:` type($condition))? attr-dict `:` type($region)"
    region = operand_def(RegionType)
    condition = opt_operand_def()
    scope = opt_prop_def(StringAttr)
    producer = opt_prop_def(UnitAttr)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryWriteEffect())

    def __init__(
        self,
        region: SSAValue | Operation,
        scope: str | None = None,
        condition: SSAValue | Operation | None = None,
        *,
        producer: bool = False,
    ):
        properties: dict[str, Attribute] = {} if scope is None else {"scope": string(scope)}
        if producer:
            properties["producer"] = UnitAttr()
        super().__init__(operands=[region, [] if condition is None else [condition]], properties=properties)


PREFETCH = "prefetch"
"""Annotation of a loop: the bytes by which memory is fetched ahead of the vectors that the loop loads, into the first cache."""


@irdl_op_definition
class PrefetchOp(PlainOp):
    """`T.prefetch(A, [(0, 16)])`: a hint that a region is wanted soon."""

    name = "tir.prefetch"
    assembly_format = "$region attr-dict `:` type($region)"
    region = operand_def(RegionType)
    traits = traits_def(MemoryWriteEffect())

    def __init__(self, region: SSAValue | Operation):
        super().__init__(operands=[region])
