"""Traces as plain data, for files and other processes: lists, dictionaries, numbers and strings only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ....dialects.schedule import signatures
from .errors import refuse
from .index_maps import RecordedMap
from .primitive import Instruction
from .random_variables import BlockRV, ExprRV, Handle, LoopRV
from .trace import Trace, unknown_handle

if TYPE_CHECKING:
    from ....dialects.schedule import Lambda

_FORM = 'each primitive is [name, {parameter: value}, [[kind of result, label], …]], a handle is {"rv": number}'


def to_json(trace: Trace) -> list[Any]:
    """The trace as data; the results of all primitives are numbered in order, lambdas are their text."""
    numbers: dict[Handle, int] = {}
    count = 0
    found: list[Any] = []
    for inst in trace.insts:
        arguments = dict(inst.arguments)
        if (decision := trace.decisions.get(inst)) is not None:
            arguments["decision"] = decision
        plain = {name: _to_data(value, numbers) for name, value in arguments.items()}
        results: list[Any] = []
        for result, label in zip(inst.results, inst.labels, strict=True):
            numbers[result] = count
            count += 1
            results.append([result.schedule_kind, label])
        found.append([inst.name, plain, results])
    return found


def _to_data(value: Any, numbers: Mapping[Handle, int]) -> Any:
    if isinstance(value, Handle):
        if value not in numbers:
            raise unknown_handle(value)
        return {"rv": numbers[value]}
    if isinstance(value, RecordedMap):
        from ....parser.schedule.lambdas import lambda_text

        return {"lambda": lambda_text(value.to_lambda())}
    if isinstance(value, list | tuple):
        return [_to_data(item, numbers) for item in cast("Sequence[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {"dict": {key: _to_data(item, numbers) for key, item in items}}
    return value


def from_json(data: Sequence[Any]) -> Trace:
    """The trace that data describes. Raises MirError where it describes none."""
    results: list[Handle] = []
    trace = Trace()
    for number, entry in enumerate(data):
        try:
            name, plain, kinds = entry
            arguments = {key: _from_data(value, results) for key, value in plain.items()}
            own = [_NEW[kind]() for kind, _ in kinds]
            labels = tuple(str(label) for _, label in kinds)
            signatures()[name]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise refuse(None, f"entry {number} of the data is no primitive of a trace", _FORM) from None
        results += own
        trace.append(Instruction(name, arguments, tuple(own), labels), arguments.get("decision"))
    return trace


_NEW = {"block": BlockRV, "loop": LoopRV, "expr": lambda: ExprRV(0)}


def _from_data(value: Any, results: Sequence[Handle]) -> Any:
    if isinstance(value, list):
        return [_from_data(item, results) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        ((kind, inner),) = cast("dict[str, Any]", value).items()
        if kind == "rv":
            return results[cast(int, inner)]
        if kind == "lambda":
            return RecordedMap(_read_lambda(inner))
        return {key: _from_data(item, results) for key, item in cast("dict[str, Any]", inner).items()}
    return value


def _read_lambda(text: str) -> Any:
    from ....parser import parse_mir
    from .index_maps import LambdaMap

    module = parse_mir(f"@T.schedule\ndef f(sch):\n    sch.transform_block_layout('B', {text})\n", "<lambda>")
    (script,) = module.body.block.ops
    (call,) = script.regions[0].block.ops
    found = cast("Lambda", call.bound["index_map"])  # type: ignore[attr-defined]
    return LambdaMap(found)
