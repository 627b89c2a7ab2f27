"""The verifiers of relay's structure ops: what each asks of its callee, its types and its blocks.

Types that are not known yet are not complained about. Names are looked up in the module around the op; a function that
stands in no module is checked without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, TensorType, TupleType, i1
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...support.symbols import lookup_symbol
from ...support.text import counted
from . import ir
from .exhaustive import missing_case
from .infer.unify import Mismatch, Unifier
from .patterns import ConstructorPattern, TuplePattern, bound_names
from .text import global_text, near_global, type_text
from .types import AdtType, FuncType, RefType, why_no_tensor

_BOOL = TensorType(i1, [])


def verify_structure(op: Operation) -> None:
    """Checks an op of the dialect's structure. Raises VerifyException with the rule that it breaks."""
    rule = _RULES.get(type(op))
    if rule is not None:
        rule(op)


def _func(op: ir.FuncOp) -> None:
    """One block that ends with relay.return of the declared type, and a name for each parameter."""
    _verify_body(f"function {global_text(op.sym_name.data)}", op.body, op.params, op, op.ret_type)


def _fn(op: ir.FnOp) -> None:
    """As a function's; the value's type is that of the function."""
    if op.self_name is not None and not op.body.block.args:
        raise VerifyException("a local function with a self_name takes itself as its first argument")
    _verify_body("a local function", op.body, op.params, op, op.ret_type)
    own = FuncType.get([p.type for p in op.params], op.ret_type, [p.data for p in op.type_params.data])
    _agree("the type of a local function", own, op.result.type)


def _verify_body(
    what: str, body: Region, params: Sequence[SSAValue], op: ir.FuncOp | ir.FnOp, result: Attribute
) -> None:
    if len(params) != len(op.param_names.data):
        raise VerifyException(
            f"{what} has {counted(len(params), 'parameter')} and {counted(len(op.param_names.data), 'name')}"
        )
    for name, param in zip(op.param_names.data, params, strict=True):
        reason = why_no_tensor(param.type)
        if reason is not None:
            raise VerifyException(f"parameter '{name.data}' of {what}, of type {type_text(param.type)}, {reason}")
    for names, kind in ((op.param_names, "parameters"), (op.type_params, "type parameters")):
        texts = [name.data for name in names.data]
        if len(set(texts)) != len(texts):
            again = next(text for text in texts if texts.count(text) > 1)
            raise VerifyException(f"{what} has two {kind} called '{again}'")
    returned = _returned(body, what)
    _agree(f"the result of {what}", result, returned.type)


def _returned(region: Region, what: str) -> SSAValue:
    """The value of a block."""
    block = region.first_block
    last = None if block is None else block.last_op
    if not isinstance(last, ir.ReturnOp):
        raise VerifyException(f"{what} must end with a relay.return")
    return last.value


def _agree(what: str, wanted: Attribute, found: Attribute) -> None:
    if wanted == found:
        return
    unifier = Unifier()
    try:
        unifier.unify(unifier.open(wanted), unifier.open(found))
    except Mismatch as mismatch:
        raise VerifyException(
            f"{what} must be {type_text(wanted)}, not {type_text(found)}: {mismatch.detail}"
        ) from None


def _let(op: ir.LetOp) -> None:
    """The variable has the value's type."""
    _agree(f"the variable %{op.var_name.data}", op.result.type, op.value.type)


def _constant(op: ir.ConstantOp) -> None:
    """The type is that of the array."""
    shape, type = op.value.data.shape, op.result.type
    if not isinstance(type, TensorType) or type.get_shape() != shape:
        raise VerifyException(f"a constant of shape {shape} cannot have the type {type_text(type)}")


def _tuple(op: ir.TupleOp) -> None:
    """A field for each operand, of its type."""
    _agree("the tuple", TupleType(ArrayAttr([f.type for f in op.fields])), op.result.type)  # type: ignore[arg-type]


def _tuple_get_item(op: ir.TupleGetItemOp) -> None:
    """The tuple has that field."""
    type, index = op.tuple_value.type, op.index.value.data
    if isinstance(type, TupleType):
        count = len(type.types.data)
        if not 0 <= index < count:
            raise VerifyException(f"a tuple of {counted(count, 'field')} has no field {index}")
        _agree(f"field {index} of the tuple", type.types.data[index], op.result.type)
    elif isinstance(type, TensorType | FuncType | AdtType | RefType):
        raise VerifyException(f"only a tuple has fields: .{index} of {type_text(type)}")


def _global_ref(op: ir.GlobalRefOp) -> None:
    """The function exists."""
    callee = _callee(op, op.symbol.string_value())
    if callee is not None:
        _agree(f"{global_text(op.symbol.string_value())}", _type_of(callee), op.result.type)


def _call_global(op: ir.CallGlobalOp) -> None:
    """The callee is a Relay function of the module, which the arguments and the result fit."""
    name = op.callee.string_value()
    callee = _callee(op, name)
    if callee is not None:
        _verify_call(global_text(name), _type_of(callee), op.type_args.data, op.arguments, op.result.type)


def _call(op: ir.CallOp) -> None:
    """What is called is a function, which the arguments and the result fit."""
    type = op.callee.type
    if isinstance(type, FuncType):
        _verify_call("the function", type, op.type_args.data, op.arguments, op.result.type)
    elif isinstance(type, TensorType | TupleType | AdtType | RefType):
        raise VerifyException(f"only a function can be called, not {type_text(type)}")


def _call_tir(op: ir.CallTirOp) -> None:
    """The callee is a TIR or TE function of the module."""
    name = op.callee.string_value()
    found, known = _symbol(op, name)
    if not known:
        return
    if found is None:
        raise VerifyException(f"there is no function {global_text(name)}{_hint(op, name)}")
    if found.name not in ("tir.prim_func", "te.func"):
        raise VerifyException(
            f"call_tir calls a TIR or TE function, but {global_text(name)} is a '{found.name}'; write {global_text(name)}(…)"
        )


def _verify_call(
    what: str,
    type: FuncType,
    type_args: Sequence[Attribute],
    arguments: Sequence[SSAValue],
    result: Attribute,
) -> None:
    inputs = type.inputs.data
    if len(arguments) != len(inputs):
        raise VerifyException(f"{what} takes {counted(len(inputs), 'argument')}, not {len(arguments)}")
    if type_args and len(type_args) != len(type.type_params.data):
        raise VerifyException(
            f"{what} takes {counted(len(type.type_params.data), 'type argument')}, not {len(type_args)}"
        )
    unifier = Unifier()
    type = unifier.instantiate(type, type_args)
    pairs = [
        (f"argument {i} of {what}", t, a.type) for i, (t, a) in enumerate(zip(type.inputs.data, arguments, strict=True))
    ]
    pairs.append((f"the result of {what}", type.output, result))
    for place, wanted, found in pairs:
        try:
            unifier.unify(unifier.open(wanted), unifier.open(found))
        except Mismatch as mismatch:
            wanted = unifier.close(wanted)
            raise VerifyException(
                f"{place} must be {type_text(wanted)}, not {type_text(found)}: {mismatch.detail}"
            ) from None


def _if(op: ir.IfOp) -> None:
    """The condition is a bool; both branches give the result's type."""
    _agree("the condition of 'if'", _BOOL, op.condition.type)
    then = _returned(op.then_region, "a branch of 'if'")
    other = _returned(op.else_region, "a branch of 'if'")
    _agree("the 'else' branch", then.type, other.type)
    _agree("the result of 'if'", then.type, op.result.type)


def _ref(op: ir.RefOp) -> None:
    """A reference to what it holds."""
    _agree("the reference", RefType(op.value.type), op.result.type)


def _ref_read(op: ir.RefReadOp) -> None:
    """Gives what the reference holds."""
    _agree("the argument of ref_read", RefType(op.result.type), op.ref.type)


def _ref_write(op: ir.RefWriteOp) -> None:
    """Stores what the reference can hold."""
    _agree("the reference that ref_write changes", RefType(op.value.type), op.ref.type)


def _type_data(op: ir.TypeDataOp) -> None:
    """Constructors are called differently; types in their fields are declared."""
    names = [name.data for name in op.constructor_names.data]
    if len(names) != len(op.constructor_fields.data):
        raise VerifyException(f"{len(names)} constructors have {len(op.constructor_fields.data)} lists of fields")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise VerifyException(f"the constructor '{name}' is declared twice")
        seen.add(name)


def _construct(op: ir.ConstructOp) -> None:
    """The constructor exists; the arguments are its fields."""
    type = _constructor(op, op.type_name.data, op.constructor.data)
    if type is not None:
        _verify_call(op.constructor.data, type, (), op.arguments, op.result.type)


def _constructor_ref(op: ir.ConstructorRefOp) -> None:
    """The constructor exists."""
    type = _constructor(op, op.type_name.data, op.constructor.data)
    if type is not None:
        _agree(op.constructor.data, type, op.result.type)


def _match(op: ir.MatchOp) -> None:
    """A clause for each pattern, all of one type; a block argument for each variable; no case left out of a complete match."""
    patterns = op.patterns.data
    if len(patterns) != len(op.clauses):
        raise VerifyException(
            f"a match of {counted(len(op.clauses), 'clause')} has {counted(len(patterns), 'pattern')}"
        )
    if not patterns:
        raise VerifyException("a match needs one clause or more")
    for index, (pattern, region) in enumerate(zip(patterns, op.clauses, strict=True)):
        block = region.first_block
        count = 0 if block is None else len(block.args)
        names = bound_names(pattern)
        if count != len(names):
            raise VerifyException(f"clause {index} binds {len(names)} variables, its block takes {count}")
        value = _returned(region, f"clause {index} of a match")
        _agree(f"clause {index} of the match", op.result.type, value.type)
        _verify_pattern(op, pattern)
    if op.complete.value.data:
        missing = missing_case(patterns, lambda name: _constructors(op, name))
        if missing is not None:
            raise VerifyException(
                f"the match leaves out {missing}; add a clause for it, or write match? where it cannot be"
            )


def _verify_pattern(op: ir.MatchOp, pattern: Attribute) -> None:
    pending = [pattern]
    while pending:
        match pending.pop():
            case ConstructorPattern() as made:
                type = _constructor(op, made.type_name.data, made.constructor.data)
                if type is not None and len(type.inputs.data) != len(made.fields.data):
                    raise VerifyException(
                        f"{made.constructor.data} has {counted(len(type.inputs.data), 'field')}, its pattern {len(made.fields.data)}"
                    )
                pending += made.fields.data
            case TuplePattern() as fields:
                pending += fields.fields.data
            case _:
                pass


# Names --------------------------------------------------------------------------------------------------------------


def _symbol(op: Operation, name: str) -> tuple[Operation | None, bool]:
    """The op called `name` in the module around, and whether there is a module."""
    parent: Operation | None = op
    while parent is not None and not isinstance(parent, ModuleOp):
        parent = parent.parent_op()
    return (None, False) if parent is None else (lookup_symbol(parent, name), True)


def _callee(op: Operation, name: str) -> ir.FuncOp | None:
    found, known = _symbol(op, name)
    if isinstance(found, ir.FuncOp) or not known:
        return found if isinstance(found, ir.FuncOp) else None
    if found is None:
        raise VerifyException(f"there is no function {global_text(name)}{_hint(op, name)}")
    raise VerifyException(
        f"{global_text(name)} is no Relay function but a '{found.name}'; write call_tir({global_text(name)}, …)"
    )


def _hint(op: Operation, name: str) -> str:
    parent: Operation | None = op
    while parent is not None and not isinstance(parent, ModuleOp):
        parent = parent.parent_op()
    symbols = [] if parent is None else [o.properties.get("sym_name") for o in parent.ops]
    names = [symbol.data for symbol in symbols if isinstance(symbol, StringAttr)]
    return near_global(name, names)


def _type_of(function: ir.FuncOp) -> FuncType:
    return function.function_type()


def _constructors(op: Operation, type_name: str) -> Mapping[str, Sequence[Attribute]] | None:
    """A data type's constructors with their fields; None where there is no module to look in."""
    declared = _data_type(op, type_name)
    return None if declared is None else declared.constructors()


def _data_type(op: Operation, type_name: str) -> ir.TypeDataOp | None:
    found, known = _symbol(op, type_name)
    if isinstance(found, ir.TypeDataOp):
        return found
    if known:
        raise VerifyException(f"there is no data type '{type_name}' in the module")
    return None


def _constructor(op: Operation, type_name: str, name: str) -> FuncType | None:
    declared = _data_type(op, type_name)
    if declared is None:
        return None
    if declared.fields_of(name) is None:
        raise VerifyException(f"the data type '{type_name}' has no constructor '{name}'")
    return declared.constructor_type(name)


_RULES: Mapping[type[Operation], Callable[[Any], None]] = {
    ir.FuncOp: _func,
    ir.FnOp: _fn,
    ir.LetOp: _let,
    ir.ConstantOp: _constant,
    ir.TupleOp: _tuple,
    ir.TupleGetItemOp: _tuple_get_item,
    ir.GlobalRefOp: _global_ref,
    ir.CallGlobalOp: _call_global,
    ir.CallOp: _call,
    ir.CallTirOp: _call_tir,
    ir.IfOp: _if,
    ir.RefOp: _ref,
    ir.RefReadOp: _ref_read,
    ir.RefWriteOp: _ref_write,
    ir.TypeDataOp: _type_data,
    ir.ConstructOp: _construct,
    ir.ConstructorRefOp: _constructor_ref,
    ir.MatchOp: _match,
}
