"""A `func.func` as an entry: what Python passes to it, and how results come back.

    func.func @f(%a: memref<?xf32>, %n: i32) -> f32 { … func.return %r : f32 }

becomes

    func.func @f(%a: memref<?xf32>, %n: i32, %out0: memref<f32>, %0: i64) {
      %size = arith.index_cast %0 : i64 to index
      %view = memref.reinterpret_cast %a to offset: [0], sizes: [%size], strides: [1] : memref<?xf32> to memref<?xf32>
      … memref.store %r, %out0[] : memref<f32>
      func.return }

which is called as a kernel of the signature `a: float32["a.0"], n: int32, out0: float32[]`, symbols `a.0`. A memref is a bare
pointer in native code (`llvm/convert/func_to_llvm.py`), so that its open sizes are arguments of their own.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import count

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    FunctionType,
    IndexType,
    IntegerType,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StringAttr,
    SymbolRefAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ..dialects.tir.types import type_to_dtype
from ..support.diagnostics import error_at
from ..support.walk import walk_ops
from .tir.signature import SIGNATURE, BufferParam, KernelSignature, Param, ScalarParam

_TAKEN = re.compile(r"(out|arg)\d+$|.*\.")
_READS = (memref.LoadOp, memref.DimOp)
"""What does not write the memref that it takes."""


def expose(function: func.FuncOp) -> int:
    """Changes a function to the signature of a kernel, in place; returns the number of its results.

    Results are stored in memrefs, and sizes are passed. Callers of the function call a copy. Raises MirError for a parameter or a
    result that Python cannot pass.
    """
    block = function.body.blocks[0]
    params = [_param(function, value, name) for value, name in zip(block.args, _names(block), strict=True)]
    results = [_result(function, type_, place) for place, type_ in enumerate(function.function_type.outputs)]
    _keep_for_callers(function)
    _store_results(function, len(block.args))
    symbols = _pass_sizes(block, params)
    inputs = [arg.type for arg in block.args]
    function.function_type = FunctionType.from_lists(inputs, [])
    function.attributes[SIGNATURE] = KernelSignature((*params, *results), tuple(symbols)).to_attr()
    return len(results)


def expose_result(function: func.FuncOp) -> None:
    """Stores the result of a lowered prim_func in a memref, which becomes its last parameter, in place."""
    signature = KernelSignature.of(function)
    if signature is None or signature.returns is None:
        return
    _keep_for_callers(function)
    _store_results(function, len(signature.params))
    function.function_type = FunctionType.from_lists([arg.type for arg in function.body.blocks[0].args], [])
    out = BufferParam("out0", signature.returns, (), writes=True)
    function.attributes[SIGNATURE] = replace(signature, params=(*signature.params, out), returns=None).to_attr()


def _names(block: Block) -> list[str]:
    """Returns the parameters' names as written, except those that results and sizes (`a.0`) have."""
    hints = [arg.name_hint for arg in block.args]
    usable = [hint is not None and hints.count(hint) == 1 and not _TAKEN.match(hint) for hint in hints]
    return [
        hint if hint is not None and use else f"arg{place}"
        for place, (hint, use) in enumerate(zip(hints, usable, strict=True))
    ]


def _dtype(type_: Attribute) -> str | None:
    """TVM's name of what Python passes as this type, None for a type of which it has no values."""
    if isinstance(type_, IndexType):
        return "int64"
    if isinstance(type_, IntegerType):
        return type_to_dtype(type_) if type_.width.data in (1, 8, 16, 32, 64) else None
    return type_to_dtype(type_) if isinstance(type_, AnyFloat) else None


def _param(function: func.FuncOp, value: SSAValue, name: str) -> Param:
    type_ = value.type
    if isinstance(type_, MemRefType):
        dtype = _dtype(type_.element_type)
        if dtype is not None and isinstance(type_.layout, NoneAttr):
            shape = tuple(
                f"{name}.{axis}" if size == DYNAMIC_INDEX else size for axis, size in enumerate(type_.get_shape())
            )
            return BufferParam(
                name, dtype, shape, writes=not all(isinstance(use.operation, _READS) for use in value.uses)
            )
    elif (dtype := _dtype(type_)) is not None:
        return ScalarParam(name, dtype)
    raise error_at(
        value,
        f"parameter '{name}' of @{function.sym_name.data} is of type {type_}, which cannot be passed from outside",
        "an entry takes scalars and memrefs of them, in row-major order",
    )


def _result(function: func.FuncOp, type_: Attribute, place: int) -> BufferParam:
    dtype = _dtype(type_)
    if dtype is None:
        raise error_at(
            function,
            f"result {place} of @{function.sym_name.data} is of type {type_}, which cannot be returned to the outside",
            "an entry returns scalars; let it write to a memref that it takes",
        )
    return BufferParam(f"out{place}", dtype, ())


def _pass_sizes(block: Block, params: list[Param]) -> list[str]:
    """Passes open sizes of memrefs after the parameters; returns their names."""
    symbols: list[str] = []
    made: list[Operation] = []
    for value, param in zip(tuple(block.args), params, strict=False):
        type_ = value.type
        if not isinstance(type_, MemRefType) or not isinstance(param, BufferParam):
            continue
        sizes: list[SSAValue | int] = []
        for size in param.shape:
            if isinstance(size, int):
                sizes.append(size)
                continue
            assert isinstance(size, str)
            symbols.append(size)
            passed = block.insert_arg(i64, len(block.args))
            made.append(cast := arith.IndexCastOp(passed, IndexType()))
            sizes.append(cast.result)
        if all(isinstance(size, int) for size in sizes):
            continue
        view = memref.ReinterpretCastOp.from_dynamic(value, [0], sizes, _row_major(sizes, made), type_)
        made.append(view)
        value.replace_all_uses_with(view.result)
        view.operands[0] = Rewriter.replace_value_with_new_type(value, MemRefType(type_.element_type, [DYNAMIC_INDEX]))
    if made:
        first = block.first_op
        assert first is not None
        block.insert_ops_before(made, first)
    return symbols


def _row_major(sizes: list[SSAValue | int], made: list[Operation]) -> list[SSAValue | int]:
    """Returns the strides of compact memory, in elements; what must be computed is appended to `made`."""
    strides: list[SSAValue | int] = []
    step: SSAValue | int = 1
    for size in reversed(sizes):
        strides.append(step)
        if isinstance(step, int) and isinstance(size, int):
            step *= size
        else:
            step = _product(step, size, made)
    return strides[::-1]


def _product(left: SSAValue | int, right: SSAValue | int, made: list[Operation]) -> SSAValue:
    values: list[SSAValue] = []
    for value in (left, right):
        if isinstance(value, int):
            made.append(constant := arith.ConstantOp.from_int_and_width(value, IndexType()))
            value = constant.result
        values.append(value)
    made.append(product := arith.MuliOp(values[0], values[1]))
    return product.result


def _store_results(function: func.FuncOp, place: int) -> None:
    """Stores returned values in memrefs, the arguments from `place` on; each return then returns nothing."""
    region = function.body
    types = function.function_type.outputs.data
    outputs = [region.blocks[0].insert_arg(MemRefType(type_, []), place + k) for k, type_ in enumerate(types)]
    for block in region.blocks:
        last = block.last_op
        if not isinstance(last, func.ReturnOp) or not last.arguments:
            continue
        stores = [memref.StoreOp.get(value, to, []) for value, to in zip(last.arguments, outputs, strict=True)]
        plain = func.ReturnOp()
        for op in (*stores, plain):
            op.location = last.location
        block.insert_ops_before([*stores, plain], last)
        block.erase_op(last)


def _keep_for_callers(function: func.FuncOp) -> None:
    """Redirects calls of the function, also its own, to a copy that is not changed."""
    module = function.parent_op()
    assert isinstance(module, ModuleOp)
    name = function.sym_name.data
    ops = list(walk_ops(module))
    calls = [op for op in ops if isinstance(op, func.CallOp) and op.callee.root_reference.data == name]
    if not calls:
        return
    taken = {attr.data for op in ops if isinstance(attr := op.properties.get("sym_name"), StringAttr)}
    called = next(each for k in count() if (each := f"{name}.called{k or ''}") not in taken)
    for call in calls:
        call.callee = SymbolRefAttr(called)
    copy = function.clone()
    copy.sym_name = StringAttr(called)
    copy.sym_visibility = StringAttr("private")
    copy.location = function.location
    module.body.block.add_op(copy)
