"""Checks that a converter takes an operator's overload, by the types in its signature."""

from __future__ import annotations

from functools import cache
from inspect import Parameter, signature
from typing import Any

from .registry import Converter


@cache
def takes(converter: Converter, overload: Any) -> bool:
    """Returns whether a converter takes the arguments of an overload, by number and type.

    std.correction(Tensor, int[]?, *, number?, bool), def std(node, x: SSAValue, dims: Any, correction: Any, keepdim: bool)    True
    std.dim(Tensor, int[]?, bool, bool)                                                                              too few: False
    """
    _, *given = signature(converter).parameters.values()
    rest = next((each for each in given if each.kind is Parameter.VAR_POSITIONAL), None)
    named = [each for each in given if each.kind is not Parameter.VAR_POSITIONAL]
    types = [str(each.type) for each in overload._schema.arguments]
    if any(each.default is Parameter.empty for each in named[len(types) :]):
        return False
    if len(types) > len(named) and rest is None:
        return False
    # Arguments that a converter leaves out are layouts, devices and dtypes: no tensors, and no words.
    taken = [str(each.annotation) for each in named] + [str(rest and rest.name)] * (len(types) - len(named))
    return all(_admits(annotation, kind) for annotation, kind in zip(taken, types, strict=False))


def _admits(annotation: str, kind: str) -> bool:
    """Returns whether a parameter takes a type of schemas: `Tensor`, `Optional[List[int]]`, `number`."""
    if annotation in ("Any", "rest", "_rest"):
        return True
    is_tensor, is_list = "Tensor" in kind, "List" in kind
    if annotation == "_":
        return not is_tensor and "str" not in kind
    kinds = annotation.split(" | ")
    if is_list != any(each.startswith("Sequence") for each in kinds) and (is_list or kinds[1:] in ([], ["None"])):
        return False
    if is_tensor and not any(each in annotation for each in ("SSAValue", "ComplexTensor", "Any")):
        return False
    return ("str" in kind) == ("str" in kinds) and (
        is_tensor or not set(kinds) <= {"SSAValue", "ComplexTensor", "None"}
    )
