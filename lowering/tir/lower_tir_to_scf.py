"""Implements `lower-tir-to-scf`: prim_funcs without blocks become functions in the standard dialects.

    for i in T.serial(8): B[i] = A[i]

becomes

    scf.for %i = %c0 to %c8 step %c1 { %x = memref.load %A[%i]; memref.store %x, %B[%i] }
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, MemRefType, ModuleOp, NoneType, StringAttr, UnitAttr
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, BlockArgument, OpResult, SSAValue
from xdsl.passes import ModulePass

from ...dialects import tir
from ...dialects.interned import memref_type
from ...dialects.tir.scalar_ops import BINARY_ROWS
from ...dialects.tir.types import element_of, lanes_of, type_to_dtype
from ...support.diagnostics import error_at
from ...support.text import take_name
from ..func_entry import expose_result
from . import expressions, memory, statements
from .emitter import INDEX
from .function import FunctionLowering, is_index_dtype
from .module_globals import Callee, ModuleGlobals
from .signature import OPERATORS, SHAPE, SIGNATURE, BufferParam, HandleParam, KernelSignature, Param, ScalarParam, Size
from .values import Index, Plain, Pointer, convert_type, flat_type

LOWERINGS = (expressions, memory, statements)
"""Importing them fills the table of handlers."""

NOALIAS = "mirstack.noalias"
"""On a `func.func`: no two of its memref arguments overlap."""

PASSTHROUGH = "passthrough"
KEPT_LOOPS = ArrayAttr([StringAttr("no-builtin-memcpy")])
"""LLVM's attributes of a kernel: loops that copy stay loops. The C library's memcpy, which is called for each row, takes from as long to
more than twice as long as vectors do, in the caches and from memory: it moves rows of some KB by an instruction that starts slowly."""


@dataclass
class Parameters:
    """The parameters of a prim_func, as a signature and as types of the lowered function."""

    signature: KernelSignature
    types: list[Attribute]
    symbols: dict[SSAValue, bool]
    """Symbolic variables, in the order in which they are passed; whether one is an extent, and so not negative."""
    size_of: Callable[[SSAValue], Size]
    """Returns a value as a caller computes it. Raises MirError for one that it cannot compute."""


_SIZE_OPERATORS = {op: text for op, row in BINARY_ROWS.items() if (text := row.symbol or row.printed) in OPERATORS}


def signature_of(function: tir.PrimFuncOp) -> KernelSignature:
    """Returns the lowered function's signature. Raises MirError for a size that a caller cannot compute."""
    return parameters_of(function).signature


def parameters_of(function: tir.PrimFuncOp) -> Parameters:
    """Returns the signature of a prim_func; raises MirError for a size that a caller cannot compute."""
    matches: dict[SSAValue, tir.MatchBufferOp] = {}
    for op in function.body.block.ops:
        if isinstance(op, tir.MatchBufferOp) and isinstance(op.source, BlockArgument):
            matches.setdefault(op.source, op)
    symbols: dict[SSAValue, bool] = {}
    names: dict[SSAValue, str] = {p: n.data for p, n in zip(function.params, function.param_names, strict=True)}
    taken = set(names.values())

    def size_of(value: int | SSAValue, extent: bool) -> Size:
        if isinstance(value, int):
            return value
        if value in names:
            if extent and value in symbols:
                symbols[value] = True
            return names[value]
        owner = value.owner
        match owner:
            case tir.VarOp():
                name = names[value] = take_name(owner.var_name.data, taken)
                symbols[value] = extent
                return name
            case tir.ConstOp() if isinstance(owner.value, IntegerAttr):
                return owner.value.value.data
            case tir.CastOp():
                return size_of(owner.value, extent)
            case tir.BinaryOp() if type(owner) in _SIZE_OPERATORS:
                return _SIZE_OPERATORS[type(owner)], size_of(owner.lhs, False), size_of(owner.rhs, False)
            case _:
                raise error_at(
                    value,
                    "a caller cannot compute this size of a parameter",
                    "sizes are numbers, variables and sums, products, quotients, minima and maxima of them",
                )

    params: list[Param] = []
    types: list[Attribute] = []
    for param, name in zip(function.params, function.param_names, strict=True):
        op = matches.get(param)
        if isinstance(param.type, tir.BufferType):
            shape = param.type.static_shape or ()
            item = convert_type(param.type.dtype, param)
            types.append(memref_type(item, *shape) if lanes_of(item) == 1 else flat_type(element_of(item)))
            dtype, scope = type_to_dtype(param.type.dtype), param.type.scope.data
            params.append(BufferParam(name.data, dtype, shape, None, 0, scope, _is_written([param])))
        elif op is not None:
            type_ = op.result.type
            shape = tuple(size_of(e, True) for e in op.extents())
            strides = op.stride_values()
            steps = None if strides is None else tuple(size_of(s, False) for s in strides)
            offset = 0 if op.elem_offset is None else size_of(op.elem_offset, False)
            item = convert_type(type_.dtype, op.result)
            plain = steps is None and offset == 0 and lanes_of(item) == 1 and type_.static_shape is not None
            types.append(memref_type(item, *(type_.static_shape or ())) if plain else flat_type(element_of(item)))
            views = [
                m.result for m in function.body.block.ops if isinstance(m, tir.MatchBufferOp) and m.source is param
            ]
            written = _is_written(views)
            dtype = type_to_dtype(type_.dtype)
            scope, forward = type_.scope.data, op.is_auto
            params.append(BufferParam(name.data, dtype, shape, steps, offset, scope, written, forward))
        elif isinstance(param.type, tir.HandleType):
            types.append(LLVMPointerType())
            params.append(HandleParam(name.data))
        else:
            types.append(convert_type(param.type, param))
            params.append(ScalarParam(name.data, type_to_dtype(param.type)))
    for op in matches.values():  # variables that only further views of a parameter name
        for value in (*op.shape, *op.strides, *([] if op.elem_offset is None else [op.elem_offset])):
            size_of(value, False)
    types += [INDEX] * len(symbols)
    returned = _returned_type(function)
    returns = None if returned is None else type_to_dtype(returned)
    return Parameters(
        KernelSignature(tuple(params), tuple(names[s] for s in symbols), returns),
        types,
        symbols,
        lambda value: size_of(value, False),
    )


def _is_written(buffers: Iterable[SSAValue]) -> bool:
    """Returns whether a buffer may be stored to, its address taken or passed on."""
    for buffer in buffers:
        for use in buffer.uses:
            op = use.operation
            if isinstance(op, tir.LoadOp):
                continue
            if isinstance(op, tir.BufferRegionOp):
                matches = [u.operation for u in op.result.uses]
                if not _is_written(m.result for m in matches if isinstance(m, tir.MatchBufferOp)):
                    continue
            if isinstance(op, tir.BufferGetOp):
                views = [u.operation for u in op.result.uses]
                if op.field.data != "data":
                    continue
                if all(isinstance(v, tir.DeclBufferOp) for v in views) and not _is_written(
                    v.result for v in views if isinstance(v, tir.DeclBufferOp)
                ):
                    continue
            return True
    return False


def _returned_type(function: tir.PrimFuncOp) -> Attribute | None:
    """Returns the type of T.ret's value, or None for a function that returns nothing."""
    if not isinstance(function.ret_type, NoneType):
        return function.ret_type
    for op in function.body.block.ops:
        if isinstance(op, tir.CallOp) and op.intrinsic.data == "ret" and op.arguments:
            return op.arguments[0].type
    return None


def _flag(function: tir.PrimFuncOp, key: str) -> bool:
    value = function.attrs.data.get(key)
    return isinstance(value, UnitAttr) or (isinstance(value, IntegerAttr) and value.value.data != 0)


def lower_function(function: tir.PrimFuncOp, parameters: Parameters, globals_: ModuleGlobals) -> func.FuncOp:
    """Lowers one prim_func to a func.func of the same name and location."""
    returned = parameters.signature.returns
    outputs: list[Attribute] = []
    if returned is not None:
        type_ = _returned_type(function)
        assert type_ is not None
        outputs = [convert_type(type_, None)]
    op = func.FuncOp(function.sym_name.data, (parameters.types, outputs), visibility=function.sym_visibility)
    op.location = function.location
    op.attributes[SIGNATURE] = parameters.signature.to_attr()
    if SHAPE in function.attrs.data:
        op.attributes[SHAPE] = function.attrs.data[SHAPE]
    if _flag(function, "tir.noalias"):
        op.attributes[NOALIAS] = UnitAttr()
    op.attributes[PASSTHROUGH] = KEPT_LOOPS
    entry = op.body.block
    f = FunctionLowering(entry, globals_)
    f.location = function.location
    for param, name, argument in zip(function.params, function.param_names, entry.args, strict=False):
        argument.name_hint = name.data if SSAValue.is_valid_name(name.data) else None
        if isinstance(param.type, tir.BufferType):
            item = convert_type(param.type.dtype, param)
            extents = tuple(Index.of(e) for e in param.type.static_shape or ())
            if lanes_of(item) == 1:
                f.buffers[param] = memory.compact_buffer(f, argument, item, extents)
            else:
                steps = memory.compact_strides(f, extents)
                f.buffers[param] = memory.Buffer(
                    argument, element_of(item), extents, True, steps, Index.of(0), lanes_of(item)
                )
        elif isinstance(param.type, tir.HandleType):
            element = argument.type.element_type if isinstance(argument.type, MemRefType) else None
            f.forms[param] = Pointer(argument, element)
        elif is_index_dtype(param.type):
            f.forms[param] = Index(f.cast_index(argument, INDEX))
        else:
            f.forms[param] = Plain(argument)
    for symbol, argument in zip(parameters.symbols, entry.args[len(function.params) :], strict=True):
        assert isinstance(symbol, OpResult) and isinstance(symbol.op, tir.VarOp)
        argument.name_hint = symbol.op.var_name.data if SSAValue.is_valid_name(symbol.op.var_name.data) else None
        f.forms[symbol] = Index(argument, 0 if parameters.symbols[symbol] else None)
    f.lower_ops(function.body.block.ops)
    f.location = function.location
    f.release()
    if outputs and f.returned is None:
        raise error_at(
            function,
            f"function '{function.sym_name.data}' is to return a value, but ends without one",
            "end it with return x, or leave out the '->' of its header",
        )
    f.act(func.ReturnOp, () if f.returned is None else (f.returned,))
    return op


def lower_tir_to_scf(module: ModuleOp, strict_math: bool = False, entry: str = "") -> None:
    """Replaces every prim_func of the module by its lowered function, in place.

    With `strict_math` no product and sum are rounded once together, and no sum of lanes is reordered. The function called `entry` stores
    what it returns in memory that it takes, so that it can return its status.
    Raises MirError where a construct has no meaning on a CPU, at its location.
    """
    functions = [op for op in module.body.block.ops if isinstance(op, tir.PrimFuncOp)]
    taken = [name.data for op in module.body.block.ops if isinstance(name := op.properties.get("sym_name"), StringAttr)]
    globals_ = ModuleGlobals(taken, strict_math)
    analyzed: list[Parameters] = []
    for function in functions:
        parameters = parameters_of(function)
        analyzed.append(parameters)
        returned = _returned_type(function)
        globals_.functions[function.sym_name.data] = Callee(
            tuple(parameters.types),
            None if returned is None else convert_type(returned, None),
            parameters.signature.symbols,
        )
    lowered = [lower_function(f, p, globals_) for f, p in zip(functions, analyzed, strict=True)]
    block = module.body.block
    for function, op in zip(functions, lowered, strict=True):
        block.insert_op_before(op, function)
        function.detach()
    for op in lowered:
        if op.sym_name.data == entry:
            expose_result(op)
    first = block.first_op
    for op in globals_.ops:
        if first is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, first)


@dataclass(frozen=True)
class LowerTIRToSCF(ModulePass):
    """Lowers prim_funcs without blocks to func, scf, memref, vector, arith and math.

    With `strict_math` each float operation is rounded for itself, in the order in which it is written. The function called `entry`
    is one that Python calls: what it returns is stored in memory that it takes.
    """

    name = "lower-tir-to-scf"

    strict_math: bool = False
    entry: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lowers the module in place."""
        from ...support.deep_stack import in_deep_stack

        in_deep_stack(lambda: lower_tir_to_scf(op, self.strict_math, self.entry))
