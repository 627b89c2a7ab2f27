"""One line of LLVM IR per op of the `llvm` and `llvm_ext` dialects, by op class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects import llvm_ext
from ....support.diagnostics import error_at
from ....support.memoize import memoized
from ....support.operands import operands_of
from ...externs import check_inline_asm, check_intrinsic
from .ir_text import constant_text, escaped, mangled_type, symbol, type_text

if TYPE_CHECKING:
    from .translation import FunctionWriter

LINES: dict[type[Operation], Callable[[FunctionWriter, Any], None]] = {}

_FASTMATH_ORDER = ("reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn")


def line(
    *ops: type[Operation],
) -> Callable[[Callable[[FunctionWriter, Any], None]], Callable[[FunctionWriter, Any], None]]:
    """Decorates what writes the line of these op classes."""

    def register(write: Callable[[FunctionWriter, Any], None]) -> Callable[[FunctionWriter, Any], None]:
        for op in ops:
            LINES[op] = write
        return write

    return register


def fastmath(op: Operation) -> str:
    """Returns the op's fastmath flags, each followed by a space."""
    flags = op.properties.get("fastmathFlags")
    return "" if flags is None else _fastmath_words(flags)


@memoized
def _fastmath_words(flags: Attribute) -> str:
    if not isinstance(flags, llvm.FastMathAttr) or not flags.data:
        return ""
    if len(flags.data) == len(_FASTMATH_ORDER):
        return "fast "
    names = {flag.value for flag in flags.data}
    return "".join(f"{name} " for name in _FASTMATH_ORDER if name in names)


def _alignment(op: Operation) -> str:
    alignment = op.properties.get("alignment")
    return f", align {alignment.value.data}" if isinstance(alignment, IntegerAttr) else ""


def _ordering(op: llvm.LoadOp | llvm.StoreOp) -> tuple[str, str]:
    """Returns the text before the type, and that after the address, of an atomic access."""
    ordering = op.properties.get("ordering")
    number = ordering.value.data if isinstance(ordering, IntegerAttr) else 0
    return ("atomic ", f" {llvm.ATOMIC_ORDERING_KEYWORDS[number]}") if number else ("", "")


@memoized
def _numbers(attr: Attribute) -> tuple[int, ...]:
    """Returns the numbers of an array, such as the places of lanes."""
    return tuple(map(int, cast("DenseArrayBase[IntegerType]", attr).iter_values()))


# Arithmetic

_BINARY: dict[type[Operation], str] = {
    **{llvm.AddOp: "add", llvm.SubOp: "sub", llvm.MulOp: "mul", llvm.ShlOp: "shl"},
    **{llvm.UDivOp: "udiv", llvm.SDivOp: "sdiv", llvm.URemOp: "urem", llvm.SRemOp: "srem"},
    **{llvm.LShrOp: "lshr", llvm.AShrOp: "ashr", llvm.AndOp: "and", llvm.OrOp: "or", llvm.XOrOp: "xor"},
    **{llvm.FAddOp: "fadd", llvm.FSubOp: "fsub", llvm.FMulOp: "fmul", llvm.FDivOp: "fdiv", llvm.FRemOp: "frem"},
}


def _flags(op: Operation) -> str:
    """Returns the overflow, exact, disjoint and fastmath flags."""
    return "".join([_FLAGS[key](attr) for key, attr in op.properties.items() if key in _FLAGS]) if op.properties else ""


@memoized
def _overflow_words(flags: Attribute) -> str:
    if isinstance(flags, IntegerAttr):
        bits = flags.value.data
    else:
        bits = flags.to_int() if isinstance(flags, llvm.OverflowAttr) else 0
    return ("nuw " if bits & 2 else "") + ("nsw " if bits & 1 else "")


_FLAGS: dict[str, Callable[[Attribute], str]] = {
    "overflowFlags": _overflow_words,
    "isExact": lambda flag: "exact ",
    "isDisjoint": lambda flag: "disjoint ",
    "nonNeg": lambda flag: "nneg ",
    "fastmathFlags": _fastmath_words,
}


@line(*_BINARY)
def write_binary(w: FunctionWriter, op: Operation) -> None:
    """Writes `%r = add nsw i64 %a, %b`."""
    lhs, rhs = operands_of(op)
    w.result(op, f"{_BINARY[type(op)]} {_flags(op)}{w.typed(lhs)}, {w.name(rhs)}")


_PLAIN: dict[type[Operation], str] = {
    **{llvm.FNegOp: "fneg", llvm_ext.FreezeOp: "freeze", llvm.SelectOp: "select", llvm_ext.SelectOp: "select"},
    **{llvm_ext.ExtractElementOp: "extractelement", llvm.InsertElementOp: "insertelement"},
}


@line(*_PLAIN)
def write_plain(w: FunctionWriter, op: Operation) -> None:
    """Writes `%r = select i1 %c, float %a, float %b`, `%r = extractelement <4 x float> %v, i64 %i`."""
    w.result(op, f"{_PLAIN[type(op)]} {_flags(op)}{w.all_typed(operands_of(op))}")


_PREDICATES: dict[type[Operation], Callable[[Any], str]] = {
    llvm.ICmpOp: lambda op: f"icmp {llvm.ICmpPredicateFlag.from_int(op.predicate.value.data)}",
    llvm.FCmpOp: lambda op: (
        f"fcmp {fastmath(op)}{llvm.FCmpPredicateFlag.from_int(op.predicate.value.data).lstrip('_')}"
    ),
    llvm_ext.FCmpOp: lambda op: f"fcmp {fastmath(op)}{op.predicate.data}",
}


@line(*_PREDICATES)
def write_comparison(w: FunctionWriter, op: Operation) -> None:
    """Writes `%r = icmp slt i64 %a, %b`, `%r = fcmp olt <4 x float> %a, %b`."""
    lhs, rhs = operands_of(op)
    w.result(op, f"{_PREDICATES[type(op)](op)} {w.typed(lhs)}, {w.name(rhs)}")


_CASTS: dict[type[Operation], str] = {
    **{llvm.TruncOp: "trunc", llvm.ZExtOp: "zext", llvm.SExtOp: "sext", llvm.BitcastOp: "bitcast"},
    **{llvm.FPExtOp: "fpext", llvm.FPTruncOp: "fptrunc", llvm.SIToFPOp: "sitofp", llvm_ext.UIToFPOp: "uitofp"},
    **{llvm_ext.FPToSIOp: "fptosi", llvm_ext.FPToUIOp: "fptoui"},
    **{llvm.PtrToIntOp: "ptrtoint", llvm.IntToPtrOp: "inttoptr"},
}


@line(*_CASTS)
def write_cast(w: FunctionWriter, op: Operation) -> None:
    """Writes `%r = sext i32 %a to i64`."""
    w.result(op, f"{_CASTS[type(op)]} {_flags(op)}{w.typed(operands_of(op)[0])} to {type_text(op.results[0].type)}")


# Written where they are used


def _zero(op: llvm.ZeroOp) -> str:
    return "null" if isinstance(op.results[0].type, llvm.LLVMPointerType) else "zeroinitializer"


CONSTANTS: dict[type, Callable[[Any], str]] = {
    llvm.ConstantOp: lambda op: constant_text(op.properties["value"], op.results[0].type),
    llvm.AddressOfOp: lambda op: f"@{symbol(op.global_name.string_value())}",
    llvm.UndefOp: lambda op: "undef",
    llvm_ext.PoisonOp: lambda op: "poison",
    llvm.ZeroOp: _zero,
}
"""How their results are written."""


@line(*CONSTANTS)
def write_nothing(w: FunctionWriter, op: Operation) -> None:
    """Writes nothing: constants have no line of their own."""


# Memory


@line(llvm.LoadOp)
def write_load(w: FunctionWriter, op: llvm.LoadOp) -> None:
    """Writes `%r = load float, ptr %p, align 4`."""
    atomic, order = _ordering(op)
    pointer, type_ = operands_of(op)[0], op.results[0].type
    w.result(op, f"load {atomic}{type_text(type_)}, {w.typed(pointer)}{order}{_alignment(op)}")


@line(llvm.StoreOp)
def write_store(w: FunctionWriter, op: llvm.StoreOp) -> None:
    """Writes `store float %v, ptr %p, align 4`."""
    atomic, order = _ordering(op)
    volatile = "volatile " if "volatile_" in op.properties else ""
    text = f"  store {atomic}{volatile}{w.all_typed(operands_of(op))}{order}{_alignment(op)}"
    if "nontemporal" in op.properties:
        text += f", !nontemporal {w.module.node('!{i32 1}')}"
    w.line(op, text)


@line(llvm.AllocaOp)
def write_alloca(w: FunctionWriter, op: llvm.AllocaOp) -> None:
    """Writes `%r = alloca float, i64 4, align 64`."""
    w.result(op, f"alloca {type_text(op.elem_type)}, {w.typed(operands_of(op)[0])}{_alignment(op)}")


@line(llvm.GEPOp)
def write_gep(w: FunctionWriter, op: llvm.GEPOp) -> None:
    """Writes `%r = getelementptr inbounds float, ptr %p, i64 %i`."""
    pointer, *rest = operands_of(op)
    values = iter(rest)
    indices: list[str] = []
    properties = op.properties
    for number in _numbers(properties["rawConstantIndices"]):
        indices.append(w.typed(next(values)) if number == llvm.GEP_USE_SSA_VAL else f"i32 {number}")
    inbounds, element = "inbounds " if "inbounds" in properties else "", type_text(properties["elem_type"])
    w.result(op, f"getelementptr {inbounds}{element}, {w.typed(pointer)}, {', '.join(indices)}")


@line(llvm_ext.LaneAddressesOp)
def write_lane_addresses(w: FunctionWriter, op: llvm_ext.LaneAddressesOp) -> None:
    """Writes `%r = getelementptr float, ptr %p, <4 x i64> %i`."""
    w.result(op, f"getelementptr {type_text(op.elem_type)}, {w.all_typed(operands_of(op))}")


@line(llvm_ext.AtomicRMWOp)
def write_atomic_rmw(w: FunctionWriter, op: llvm_ext.AtomicRMWOp) -> None:
    """Writes `%r = atomicrmw add ptr %p, i64 %v seq_cst`."""
    w.result(op, f"atomicrmw {op.kind.data} {w.all_typed(operands_of(op))} {op.ordering.data}")


@line(llvm_ext.CmpXchgOp)
def write_cmpxchg(w: FunctionWriter, op: llvm_ext.CmpXchgOp) -> None:
    """Writes `%r = cmpxchg ptr %p, i64 %e, i64 %n seq_cst seq_cst`."""
    weak = "weak " if op.weak is not None else ""
    orders = f"{op.success_ordering.data} {op.failure_ordering.data}"
    w.result(op, f"cmpxchg {weak}{w.all_typed(operands_of(op))} {orders}")


@line(llvm_ext.FenceOp)
def write_fence(w: FunctionWriter, op: llvm_ext.FenceOp) -> None:
    """Writes `fence release`."""
    w.line(op, f"  fence {op.ordering.data}")


# Vectors and aggregates


@line(llvm.ShuffleVectorOp)
def write_shuffle(w: FunctionWriter, op: llvm.ShuffleVectorOp) -> None:
    """Writes `%r = shufflevector <4 x float> %a, <4 x float> %b, <2 x i32> <i32 0, i32 4>`."""
    w.result(op, f"shufflevector {w.all_typed(operands_of(op))}, {_mask(op.properties['mask'])}")


@memoized
def _mask(mask: Attribute) -> str:
    numbers = _numbers(mask)
    if not any(numbers):
        return f"<{len(numbers)} x i32> zeroinitializer"
    lanes = ", ".join(["i32 poison" if number < 0 else f"i32 {number}" for number in numbers])
    return f"<{len(numbers)} x i32> <{lanes}>"


_AGGREGATES: dict[type[Operation], str] = {llvm.ExtractValueOp: "extractvalue", llvm.InsertValueOp: "insertvalue"}


@line(*_AGGREGATES)
def write_aggregate(w: FunctionWriter, op: llvm.ExtractValueOp | llvm.InsertValueOp) -> None:
    """Writes `%r = extractvalue { i64, i1 } %s, 0`, `%r = insertvalue { i64, i1 } %s, i1 %x, 1`."""
    position = ", ".join(map(str, op.position.iter_values()))
    w.result(op, f"{_AGGREGATES[type(op)]} {w.all_typed(operands_of(op))}, {position}")


# Control


@line(llvm.BrOp)
def write_br(w: FunctionWriter, op: llvm.BrOp) -> None:
    """Writes `br label %b`."""
    w.line(op, f"  br label %{w.label(op.successors[0])}{w.loop_metadata(op)}")


@line(llvm.CondBrOp)
def write_cond_br(w: FunctionWriter, op: llvm.CondBrOp) -> None:
    """Writes `br i1 %c, label %a, label %b`."""
    then, otherwise = (w.target(block, op, position) for position, block in enumerate(op.successors))
    w.line(op, f"  br {w.typed(operands_of(op)[0])}, {then}, {otherwise}{w.loop_metadata(op)}")


@line(llvm_ext.SwitchOp)
def write_switch(w: FunctionWriter, op: llvm_ext.SwitchOp) -> None:
    """Writes `switch i64 %x, label %d [ i64 1, label %a ]`."""
    type_ = type_text(op.value.type)
    cases = " ".join(
        f"{type_} {number}, {w.target(block, op, position)}"
        for position, (number, block, _) in enumerate(op.cases(), start=1)
    )
    w.line(op, f"  switch {w.typed(op.value)}, {w.target(op.default_block, op, 0)} [ {cases} ]")


@line(llvm.ReturnOp)
def write_return(w: FunctionWriter, op: llvm.ReturnOp) -> None:
    """Writes `ret float %x`."""
    w.line(op, f"  ret {w.all_typed(operands_of(op)) or 'void'}")


@line(llvm.UnreachableOp)
def write_unreachable(w: FunctionWriter, op: llvm.UnreachableOp) -> None:
    """Writes `unreachable`."""
    w.line(op, "  unreachable")


# Calls


def output_text(op: Operation) -> str:
    """Returns the type of a call's result, `void` without one."""
    return type_text(op.results[0].type) if op.results else "void"


def _write_call(w: FunctionWriter, op: Operation, text: str) -> None:
    if op.results:
        w.result(op, text)
    else:
        w.line(op, f"  {text}")


@line(llvm.CallOp)
def write_call(w: FunctionWriter, op: llvm.CallOp) -> None:
    """Writes `%r = call float @f(float %x)`, or a call through a pointer."""
    args = list(op.args)
    kind = op.TailCallKind.data.value
    tail = f"{kind} " if kind != "none" else ""
    convention = op.CConv.convention.data
    words = f"{tail}call {fastmath(op)}{convention + ' ' if convention != 'ccc' else ''}"
    callee_type = op.var_callee_type
    if op.callee is not None:
        name = op.callee.string_value()
        target = f"@{symbol(name)}"
        declared = w.module.functions.get(name)
        if declared is None:
            raise error_at(op, f"call of @{name}, which the module does not define", "declare it with llvm.func")
        _check_types(op, name, args, declared.function_type)
        callee_type = declared.function_type if declared.function_type.is_variadic else callee_type
    else:
        target = w.name(args.pop(0))
    output = output_text(op)
    called = type_text(callee_type) if callee_type is not None and callee_type.is_variadic else output
    _write_call(w, op, f"{words}{called} {target}({w.all_typed(args)})")


def _check_types(op: llvm.CallOp, name: str, args: Sequence[SSAValue], declared: llvm.LLVMFunctionType) -> None:
    """Raises MirError where a call's types are not the function's, which would read unset values."""
    given, wanted = [type_text(arg.type) for arg in args], [type_text(type) for type in declared.inputs]
    result = output_text(op)
    fits = given[: len(wanted)] == wanted and (len(given) == len(wanted) or declared.is_variadic)
    if not fits or result != type_text(declared.output):
        shown = f"({', '.join(wanted)}{', ...' if declared.is_variadic else ''}) -> {type_text(declared.output)}"
        raise error_at(op, f"@{name} is {shown}, but called as ({', '.join(given)}) -> {result}")


def _intrinsic(w: FunctionWriter, op: Operation, name: str) -> None:
    mangled = w.module.intrinsic(name, op.operands, op.results[0].type if op.results else None)
    _write_call(w, op, f"call {fastmath(op)}{output_text(op)} @{mangled}({w.all_typed(op.operands)})")


@line(llvm.CallIntrinsicOp)
def write_intrinsic(w: FunctionWriter, op: llvm.CallIntrinsicOp) -> None:
    """Writes a call of the intrinsic that the op names, at the op's types."""
    if op.op_bundle_operands:
        raise error_at(op, "an intrinsic call with operand bundles cannot be translated", "call it without them")
    check_intrinsic(op, op.intrin.data)
    _intrinsic(w, op, op.intrin.data)


@line(
    *(llvm.FAbsOp, llvm.FCeilOp, llvm.FCopySignOp, llvm.FCosOp, llvm.FExp2Op, llvm.FExpOp, llvm.FFloorOp, llvm.FLog2Op),
    *(llvm.FLogOp, llvm.FMAOp, llvm.FPowOp, llvm.FSinOp, llvm.FSqrtOp, llvm.VectorFMaxOp, llvm.VectorFMinOp),
    *(llvm.StackSaveOp, llvm.StackRestoreOp, llvm.VectorReduceFAddOp, llvm.VectorReduceFMulOp),
)
def write_named_intrinsic(w: FunctionWriter, op: Operation) -> None:
    """Writes an op that is one intrinsic: `llvm.intr.fabs` is `@llvm.fabs`."""
    _intrinsic(w, op, "llvm." + op.name.removeprefix("llvm.intr."))


@line(llvm.MaskedStoreOp)
def write_masked_store(w: FunctionWriter, op: llvm.MaskedStoreOp) -> None:
    """Writes a store of the lanes whose mask is set."""
    value, pointer, mask = op.operands
    types: list[Attribute] = [value.type, pointer.type]
    name = "llvm.masked.store." + ".".join(map(mangled_type, types))
    text = f"void @{name}({type_text(value.type)}, ptr, i32, {type_text(mask.type)})"
    w.module.declared.setdefault(name, f"declare {text}")
    alignment = op.alignment.value.data
    w.line(op, f"  call void @{name}({w.typed(value)}, {w.typed(pointer)}, i32 {alignment}, {w.typed(mask)})")


@line(llvm.InlineAsmOp)
def write_inline_asm(w: FunctionWriter, op: llvm.InlineAsmOp) -> None:
    """Writes `call void asm sideeffect "pause", ""()`."""
    if w.module.externs is not None:
        check_inline_asm(op, w.module.externs)
    effects = "sideeffect " if op.has_side_effects is not None else ""
    effects += "alignstack " if op.is_align_stack is not None else ""
    asm = f'asm {effects}"{escaped(op.asm_string.data)}", "{escaped(op.constraints.data)}"'
    _write_call(w, op, f"call {output_text(op)} {asm}({w.all_typed(op.operands)})")
