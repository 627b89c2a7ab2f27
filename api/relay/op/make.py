"""Makes a Python function, with TVM's signature, of each entry in the operator table."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import index as operator_index
from typing import Any, TypeAlias, cast

from ....dialects.relay.operator import REQUIRED, Kind, Operator, get_operator
from ....support.text import did_you_mean
from ...ir.op import Op
from ...nd import virtual_device
from ..expr import Call, Constant, RelayExpr, Tuple, TupleWrapper, const
from .signatures import DYNAMIC, EITHER, FIXED, LISTS, NUMBERS, PADDED, RESULTS, SIGNATURES

OperatorFunction = Callable[..., Any]
Ints: TypeAlias = "int | Sequence[int | Sequence[int]]"
"""Integers as an attribute takes them: one, a list, a list of lists."""
Numbers: TypeAlias = "float | Sequence[float | Sequence[float]]"
"""Numbers as an attribute takes them."""


@dataclass(frozen=True)
class _Parameter:
    """A parameter: `target` is the argument or attribute of the operator that it sets."""

    name: str
    target: str
    default: Any = inspect.Parameter.empty


def make_function(operator: Operator, text: str | None = None) -> OperatorFunction:
    """Returns the function that makes calls of an operator, with TVM's parameters and defaults.

    `text`: a signature as in `SIGNATURES`, in place of the one there.
    """
    parameters = _parameters(operator, text or SIGNATURES.get(operator.name))
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [inspect.Parameter(p.name, kind, default=p.default, annotation=_type_of(operator, p)) for p in parameters],
        return_annotation=_result_of(operator),
    )
    targets = {p.name: p.target for p in parameters}

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            unknown = next((name for name in kwargs if name not in signature.parameters), "")
            hint = did_you_mean(unknown, signature.parameters) if unknown else ""
            raise TypeError(f"relay.{operator.name}: {error}{hint}") from None
        bound.apply_defaults()
        given = {targets[name]: value for name, value in bound.arguments.items()}
        return make_call(operator, given)

    function.__name__ = function.__qualname__ = operator.name.rpartition(".")[2]
    function.__doc__ = _documentation(operator, parameters)
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _parameters(operator: Operator, text: str | None) -> list[_Parameter]:
    arguments = {name.lstrip("*") for name in operator.arguments}
    defaults: dict[str, Any] = {
        spec.name: inspect.Parameter.empty if spec.default is REQUIRED else spec.default for spec in operator.attributes
    }
    if text is None:
        # An attribute that has an argument's name repeats what the argument says.
        listed = [_Parameter(name, name) for name in (argument.lstrip("*") for argument in operator.arguments)]
        listed += [_Parameter(name, name, default) for name, default in defaults.items() if name not in arguments]
        return _required_first(listed)
    result: list[_Parameter] = []
    for part in _split(text):
        head, equals, default = part.partition("=")
        name, _, target = head.rstrip("!").partition("@")
        target = target or name
        if equals:
            result.append(_Parameter(name, target, ast.literal_eval(default)))
        elif head.endswith("!") or target in arguments:
            result.append(_Parameter(name, target))
        else:
            result.append(_Parameter(name, target, defaults[target]))
    return result


_TYPES: dict[Kind, str] = {"ints": "Ints", "floats": "Numbers", "any": "object", "int": "int", "float": "float", "bool": "bool", "str": "str"}  # fmt: skip


def _type_of(operator: Operator, parameter: _Parameter) -> str:
    """Returns the type of a parameter's values in Python's words, from the kind in the operator table."""
    target = parameter.target
    alternatives: dict[str, None] = {}
    if f"*{target}" in operator.arguments:
        alternatives = dict.fromkeys(("RelayExpr", "TupleWrapper", "Sequence[RelayExpr]"))
    elif target in operator.arguments:
        numbers = {"Numbers": None} if (operator.name, target) in NUMBERS else {}
        alternatives = {"RelayExpr": None, **numbers, **({"Ints": None} if (operator.name, target) in LISTS else {})}
    elif target in _DEVICES:
        alternatives = dict.fromkeys(("Device", "str"))
    else:
        spec = operator.specs[target]
        dynamic = get_operator(f"dyn.{operator.name}") if operator.name in DYNAMIC else None
        is_argument = dynamic is not None and target in dynamic.arguments
        alternatives = {_TYPES[spec.kind]: None, **({"RelayExpr": None} if is_argument else {})}
        if spec.nullable:
            alternatives["None"] = None
    if parameter.default is None:
        alternatives["None"] = None
    return "object" if "object" in alternatives else " | ".join(alternatives)


def _result_of(operator: Operator) -> str:
    count = RESULTS.get(operator.name, 1)
    if operator.name in EITHER:
        return "Call | TupleWrapper"
    return "Call" if count == 1 else "TupleWrapper"


def _split(text: str) -> list[str]:
    """The parts of a signature between its commas, those inside parentheses apart."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _required_first(parameters: list[_Parameter]) -> list[_Parameter]:
    return sorted(parameters, key=lambda p: p.default is not inspect.Parameter.empty)


def make_call(operator: Operator, given: Mapping[str, Any]) -> Any:
    """Returns a call of the operator with these arguments and attributes, by name.

    It is a call of its `dyn.` form if one of the attributes is an expression other than a constant.
    """
    chosen = operator
    arguments = {name.lstrip("*") for name in operator.arguments}
    given = {name: _known(value) if name in arguments else _attribute(value) for name, value in given.items()}
    if any(isinstance(value, RelayExpr) for name, value in given.items() if name not in arguments):
        dynamic = get_operator(f"dyn.{operator.name}")
        if dynamic is None:
            name = next(n for n, v in given.items() if n not in arguments and isinstance(v, RelayExpr))
            raise TypeError(f"{operator.name}: {name} is to be known, not an expression")
        chosen = dynamic
    operands = [_operand(operator, chosen, name, given) for name in chosen.arguments]
    taken = {name.lstrip("*") for name in chosen.arguments}
    attrs = {name: value for name, value in given.items() if name in chosen.specs and name not in taken}
    for name, value in FIXED.get(operator.name, {}).items():
        if attrs.get(name) is None and name not in taken:
            attrs[name] = value
    attrs |= {name: virtual_device(attrs[name]) for name in attrs.keys() & _DEVICES}
    attrs = {name: _shaped(operator, chosen, name, value) for name, value in attrs.items()}
    call = Call(Op.get(chosen.name), operands, attrs)
    count = RESULTS.get(operator.name, 1)
    if callable(count):
        count = count(dict(given))
    return call if count == 1 else TupleWrapper(call, count)


def _known(value: Any) -> Any:
    """A tuple of expressions as an expression."""
    if isinstance(value, TupleWrapper):
        return value.tuple_value
    if isinstance(value, (list, tuple)):
        items: list[Any] = [_known(item) for item in cast("list[Any]", value)]
        if items and all(isinstance(item, RelayExpr) for item in items):
            return Tuple(items)
        return items
    return value


def _attribute(value: Any) -> Any:
    """A constant as the numbers that it holds."""
    return value.value.array.tolist() if isinstance(value, Constant) else value


def _operand(operator: Operator, chosen: Operator, argument: str, given: Mapping[str, Any]) -> RelayExpr:
    name = argument.lstrip("*")
    value = given[name]
    if value is None:
        value = FIXED.get(operator.name, {}).get(name)
    if isinstance(value, RelayExpr):
        return value
    if (operator.name, name) in NUMBERS:
        return const(value, NUMBERS[operator.name, name])
    if (operator.name, name) in LISTS or chosen is not operator:
        return const(value, "int64")
    if argument.startswith("*"):
        raise TypeError(f"{operator.name}: {name} is a list or a tuple of expressions, not {value!r}")
    hint = "; write relay.const(…)" if isinstance(value, (int, float)) else ""
    raise TypeError(f"{operator.name}: {name} is an expression, not {value!r}{hint}")


def _shaped(operator: Operator, chosen: Operator, name: str, value: Any) -> Any:
    """Returns an attribute's value as TVM's functions accept it: one number for each axis."""
    spec = chosen.specs[name]
    strides = chosen.specs.get("strides")
    rank = len(strides.default) if strides is not None and isinstance(strides.default, tuple) else 0
    if rank and name == "padding" and operator.name in PADDED:
        return _sides(value, rank)
    if spec.kind == "ints" and hasattr(value, "__index__") and not isinstance(value, bool):
        default = spec.default
        length = len(default) if isinstance(default, tuple) else rank if name in _PER_AXIS else 1
        return (operator_index(value),) * max(length, 1)
    return value


_DEVICES = {"virtual_device", "src_virtual_device", "dst_virtual_device"}
_PER_AXIS = ("kernel_size", "pool_size", "strides", "dilation", "output_size")


def _sides(padding: Any, rank: int) -> tuple[int, ...]:
    """The padding of each side: the beginnings, then the ends."""
    if hasattr(padding, "__index__"):
        return (int(padding),) * (2 * rank)
    sizes = tuple(int(size) for size in padding)
    if len(sizes) == 1:
        sizes *= rank
    return sizes * 2 if len(sizes) == rank else sizes


def _documentation(operator: Operator, parameters: list[_Parameter]) -> str:
    lines = [operator.doc or f"A call of the operator `{operator.name}`.", ""]
    for parameter in parameters:
        spec = operator.specs.get(parameter.target)
        what = "an expression" if spec is None else spec.doc or spec.kind
        lines.append(f"{parameter.name}: {what}")
    return "\n".join(lines)
