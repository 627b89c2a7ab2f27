"""Lowers `func` to `llvm`: bare pointers for memrefs, a status, attributes for alias analysis.

Attributes that a `func.func` may carry:

- `mirstack.noalias` (unit): no two memref arguments overlap; they become `noalias nonnull`;
- `mirstack.align` (integer): every memref argument's address is a multiple of so many bytes;
- `passthrough` (array of strings or string pairs): LLVM function attributes;
- `mirstack.status` (unit, on a declaration): the function returns an i32 status after its results.

Argument attributes that start with `llvm.` are handed on. A public function without results returns an i32 status: 0,
or the code of the check that failed (see `converter.MESSAGES`); any other function does when something in it can fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import cf, func, llvm, memref
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, MemRefType, NoneAttr, UnitAttr, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ....dialects.interned import integer
from ....support.diagnostics import error_at
from ....support.walk import all_ops
from ...externs import RUNTIME, WRITTEN
from .builder import make_function
from .converter import Converter, HandlerTable, Signature
from .heap_memory import HeapMemory
from .memref_descriptor import from_bare_pointer
from .types import TypeConverter, byte_size, in_memory, is_memref

TABLE = HandlerTable()

NOALIAS = "mirstack.noalias"
ALIGN = "mirstack.align"
STATUS = "mirstack.status"
PASSTHROUGH = "passthrough"
HANDED_ON = ("mirstack.signature", "mirstack.shape")
"""What callers of a kernel in the LLVM dialect have to know."""


def is_public(op: func.FuncOp) -> bool:
    """Tells whether the function can be called from outside of its module."""
    return op.sym_visibility is None or op.sym_visibility.data == "public"


FAILING_OPS: frozenset[type] = frozenset((cf.AssertOp, memref.AllocOp))
"""What makes its function return a status."""


def signatures_of(ops: Iterable[Operation], types: TypeConverter) -> dict[str, Signature]:
    """Returns the converted signature of each function among `ops`, and whether it or a callee can fail."""
    by_name: dict[str, func.FuncOp] = {}
    callers: dict[str, list[str]] = {}
    failing: list[str] = []
    known: dict[str, Signature] = {}
    for op in ops:
        if isinstance(op, llvm.FuncOp):
            output = op.function_type.output
            results = () if isinstance(output, llvm.LLVMVoidType) else (output,)
            known[op.sym_name.data] = Signature(op.function_type.inputs.data, results, False, False)
        if not isinstance(op, func.FuncOp):
            continue
        name = op.sym_name.data
        if name in by_name:
            raise error_at(op, f"function @{name} is defined twice", "give one of them another name")
        by_name[name] = op
        fails = STATUS in op.attributes
        for inner in all_ops(op):
            if type(inner) is func.CallOp:
                callers.setdefault(inner.callee.root_reference.data, []).append(name)
            fails = fails or type(inner) in FAILING_OPS
        if fails:
            failing.append(name)
    may_fail: set[str] = set()
    while failing:
        if (name := failing.pop()) not in may_fail:
            may_fail.add(name)
            failing += callers.get(name, ())
    return known | {name: _signature(op, name in may_fail, types) for name, op in by_name.items()}


def _signature(op: func.FuncOp, may_fail: bool, types: TypeConverter) -> Signature:
    where = op.body.blocks[0].args if op.body.blocks else ()
    inputs = [types(type_, where[i] if where else None) for i, type_ in enumerate(op.function_type.inputs)]
    results = [types(type_) for type_ in op.function_type.outputs]
    silent = not results and is_public(op) and bool(op.body.blocks)
    return Signature(tuple(inputs), tuple(results), may_fail or silent, may_fail)


def unpack_struct(c: Converter, struct: SSAValue, types: Sequence[Attribute]) -> list[SSAValue]:
    """Returns the fields of a struct."""
    return [
        c.emit(llvm.ExtractValueOp, (struct,), type_, {"position": DenseArrayBase.from_list(i64, [position])})
        for position, type_ in enumerate(types)
    ]


_DISTINCT = dict.fromkeys(("llvm.noalias", "llvm.nonnull", "llvm.noundef"), UnitAttr())
"""Of arguments that no other overlaps."""


def _argument_attrs(op: func.FuncOp) -> ArrayAttr[DictionaryAttr] | None:
    """LLVM's attributes of each argument."""
    given = [dict(attrs.data) for attrs in op.arg_attrs] if op.arg_attrs is not None else []
    types = op.function_type.inputs.data
    given += [{} for _ in range(len(types) - len(given))]
    noalias, alignment = op.attributes.get(NOALIAS), op.attributes.get(ALIGN)
    out: list[DictionaryAttr] = []
    for type_, attrs in zip(types, given, strict=True):
        kept = {key: value for key, value in attrs.items() if key.startswith("llvm.")}
        if is_memref(type_):
            if noalias is not None:
                kept |= _DISTINCT
                if (count := _static_extent(type_)) > 0:
                    kept["llvm.dereferenceable"] = integer(count, i64)
            if alignment is not None:
                kept["llvm.align"] = alignment
        out.append(DictionaryAttr(kept))
    return ArrayAttr(out) if any(attrs.data for attrs in out) else None


def _static_extent(type_: MemRefType) -> int:
    """Returns the bytes that a memref of static shape and default layout covers, otherwise 0."""
    sizes = type_.get_shape()
    if any(size < 0 for size in sizes) or not isinstance(type_.layout, NoneAttr):
        return 0
    total = byte_size(in_memory(TypeConverter()(type_.element_type)))
    for size in sizes:
        total *= size
    return total


@TABLE.on(func.FuncOp)
def convert_func(c: Converter, op: func.FuncOp) -> None:
    """Lowers a function, its body converted block by block."""
    name = op.sym_name.data
    signature = c.signatures[name]
    arg_attrs = _argument_attrs(op)
    has_body = bool(op.body.blocks)
    entry = Block(arg_types=signature.inputs) if has_body else None
    new = make_function(
        name,
        llvm.LLVMFunctionType(signature.inputs, signature.output),
        "external" if is_public(op) or not has_body else "internal",
        None if entry is None else Region(entry),
        {"arg_attrs": arg_attrs} if arg_attrs is not None else {},
    )
    new.location = op.location
    passthrough = op.attributes.get(PASSTHROUGH)
    c.passthrough = passthrough if isinstance(passthrough, ArrayAttr) else None
    if c.passthrough is not None:
        new.properties["passthrough"] = c.passthrough
    for key in HANDED_ON:
        if key in op.attributes:
            new.attributes[key] = op.attributes[key]
    if not has_body and name in RUNTIME:
        new.attributes[WRITTEN] = UnitAttr()
    c.top_level.append(new)
    if entry is None:
        return
    new.properties["no_unwind"] = UnitAttr()
    c.start_function(entry)
    c.values, c.memrefs, c.blocks = {}, {}, {}
    c.signature, c.failure, c.heap = signature, None, HeapMemory()
    c.argument_attrs, c.function_name, c.in_parallel = arg_attrs, name, False
    first = op.body.blocks[0]
    for source, converted in zip(first.args, entry.args, strict=True):
        if is_memref(source.type):
            element = c.types(source.type.element_type, source)
            c.bind(source, from_bare_pointer(converted, source.type, element, source))
        else:
            c.bind(source, converted)
    c.convert_region(op.body, entry, c.end_function)


@TABLE.on(func.ReturnOp)
def convert_return(c: Converter, op: func.ReturnOp) -> None:
    """Memrefs are returned as bare pointers."""
    c.return_values([bare_value(c, operand) for operand in op.arguments], None)


def bare_value(c: Converter, source: SSAValue) -> SSAValue:
    """Returns the value as it is passed to or from a function: a memref as its bare pointer."""
    return c.memref(source).bare(c) if is_memref(source.type) else c.value(source)


@TABLE.on(func.CallOp)
def convert_call(c: Converter, op: func.CallOp) -> None:
    """Lowers a call; a failed check of the callee is handed on to the caller."""
    callee = op.callee.root_reference.data
    signature = c.signatures.get(callee)
    if signature is None:
        raise error_at(op, f"call of @{callee}, which the module does not define", "declare it with func.func private")
    returned = c.call(callee, [bare_value(c, operand) for operand in op.arguments], signature.output)
    results: list[SSAValue] = [] if returned is None else [returned]
    if returned is not None and len(signature.results) + signature.returns_status > 1:
        struct = returned.type
        assert isinstance(struct, llvm.LLVMStructType)
        results = unpack_struct(c, returned, struct.types.data)
    status = results.pop() if signature.returns_status else None
    for source, converted in zip(op.res, results, strict=True):
        if is_memref(source.type):
            element = c.types(source.type.element_type, source)
            c.bind(source, from_bare_pointer(converted, source.type, element, source))
        else:
            c.bind(source, converted)
    if status is not None and signature.may_fail:
        c.fail_if_status(status)
