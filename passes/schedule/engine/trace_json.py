"""Traces as data, in the form of TVM's records of tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ....dialects.schedule import signatures
from .errors import refuse
from .index_maps import LambdaMap, RecordedMap
from .instruction import Instruction, InstructionKind, unknown_handle
from .random_variables import BlockRV, ExprRV, Handle, LoopRV

if TYPE_CHECKING:
    from ....dialects.schedule import Lambda
    from .trace import Trace

_PREFIXES = {"block": "b", "loop": "l", "expr": "v"}
_NEW = {"b": BlockRV, "l": LoopRV, "v": lambda: ExprRV(0)}
_FORM = "a trace is [[[kind, inputs, attributes, outputs], …], [[number of the instruction, decision], …]]"


def to_json(trace: Trace) -> list[Any]:
    """Returns the instructions and the decisions of a trace as data."""
    names: dict[Any, str] = {}
    instructions: list[Any] = []
    count = 0
    for inst in trace.insts:
        inputs = [_written(value, names, quoted=True) for value in inst.inputs]
        attrs = [_written(value, names, quoted=False) for value in inst.attrs]
        known = signatures()[inst.name]
        outputs: list[str] = []
        for result in inst.results:
            names[result] = f"{_PREFIXES[known.element or known.result]}{count}"
            outputs.append(names[result])
            count += 1
        instructions.append([inst.kind.name, inputs, attrs, outputs])
    places = {inst: number for number, inst in enumerate(trace.insts)}
    decisions = [[places[inst], decision] for inst, decision in trace.decisions.items() if inst in places]
    return [instructions, sorted(decisions, key=lambda pair: cast("int", pair[0]))]


def _written(value: Any, names: Mapping[Any, str], quoted: bool) -> Any:
    if isinstance(value, Handle):
        if value not in names:
            raise unknown_handle(value)
        return names[value]
    if isinstance(value, RecordedMap):
        from ....parser.schedule.lambdas import lambda_text

        return lambda_text(value.to_lambda())
    if isinstance(value, list | tuple):
        return [_written(item, names, quoted) for item in cast("Sequence[Any]", value)]
    if isinstance(value, dict):
        return {key: _written(item, names, quoted) for key, item in cast("dict[str, Any]", value).items()}
    return f'"{value}"' if quoted and isinstance(value, str) else value


def from_json(data: Sequence[Any]) -> tuple[list[Instruction], dict[Instruction, Any]]:
    """Returns the instructions and decisions of data. Raises MirError where it is not a trace."""
    handles: dict[str, Handle] = {}
    found: list[Instruction] = []
    try:
        instructions, chosen = data
        decisions = {int(number): decision for number, decision in chosen}
    except (TypeError, ValueError):
        raise refuse(None, "the data is not a trace", _FORM) from None
    for number, entry in enumerate(instructions):
        try:
            name, inputs, attrs, outputs = entry
            kind = InstructionKind.get(name)
            own = {output: _NEW[output[0]]() for output in outputs}
            given = [_read(value, handles, quoted=True) for value in inputs]
            stated = [_read(value, handles, quoted=False) for value in attrs]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise refuse(None, f"entry {number} of the data is not an instruction of a trace", _FORM) from None
        handles.update(own)
        found.append(Instruction(kind, given, stated, list(own.values())))
    if any(not 0 <= number < len(found) for number in decisions):
        raise refuse(None, "the data has a decision of an instruction that it does not have", _FORM)
    return found, {found[number]: decision for number, decision in decisions.items()}


def _read(value: Any, handles: Mapping[str, Handle], quoted: bool) -> Any:
    if isinstance(value, list):
        return [_read(item, handles, quoted) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {str(key): _read(item, handles, quoted) for key, item in cast("dict[Any, Any]", value).items()}
    if not isinstance(value, str):
        return value
    if quoted:
        return value[1:-1] if value.startswith('"') else handles[value]
    return RecordedMap(_read_lambda(value)) if value.startswith("lambda") else value


def _read_lambda(text: str) -> LambdaMap:
    from ....parser import parse_mir

    module = parse_mir(f"@T.schedule\ndef f(sch):\n    sch.transform_block_layout('B', {text})\n", "<lambda>")
    (script,) = module.body.block.ops
    (call,) = script.regions[0].block.ops
    return LambdaMap(cast("Lambda", call.bound["index_map"]))  # type: ignore[attr-defined]
