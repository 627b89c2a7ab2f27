"""The trace of a schedule: what was applied, in order; as a script, as text, and applied again."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.ir import Block, Operation, Region, SSAValue

from ....dialects.schedule import (
    Argument,
    ComputeOp,
    Ref,
    ScriptOp,
    Signature,
    SignatureError,
    primitive_class,
    result_types,
    signatures,
)
from .errors import refuse
from .index_maps import LambdaMap, RecordedMap
from .instruction import Instruction, InstructionKind, unknown_handle
from .primitive import find
from .random_variables import BlockRV, ComputedRV, ExprRV, Handle, LoopRV

if TYPE_CHECKING:
    from ....dialects.schedule import Lambda
    from .schedule import Schedule

DecisionProvider = Callable[[Instruction, list[Any], list[Any], Any], Any]
"""Given an instruction that draws, its arguments (plain, by name) and what it drew: what it is to draw instead."""


class Trace:
    """The primitives that were applied. `decisions` holds what those drew that draw."""

    def __init__(self, insts: Sequence[Instruction] = (), decisions: Mapping[Instruction, Any] | None = None):
        self.insts = list(insts)
        self.decisions = dict(decisions or {})

    def append(self, inst: Instruction, decision: Any = None) -> None:
        """Adds a primitive that was applied."""
        self.insts.append(inst)
        if decision is not None:
            self.decisions[inst] = decision

    def pop(self) -> Instruction | None:
        """Takes the last primitive away; None when there is none."""
        if not self.insts:
            return None
        last = self.insts.pop()
        self.decisions.pop(last, None)
        return last

    def get_decision(self, inst: Instruction) -> Any:
        """Returns the decision of an instruction; None for one that draws nothing."""
        return self.decisions.get(inst)

    def arguments_of(self, inst: Instruction) -> dict[str, Any]:
        """Returns the arguments of an instruction, with what it drew as `decision`."""
        decision = self.decisions.get(inst)
        return dict(inst.arguments) if decision is None else {**inst.arguments, "decision": decision}

    def with_decision(self, inst: Instruction, decision: Any, remove_postproc: bool = False) -> Trace:
        """This trace with another decision at one place."""
        found = Trace(self._before_postproc() if remove_postproc else self.insts, self.decisions)
        found.decisions[inst] = decision
        return found

    def __len__(self) -> int:
        return len(self.insts)

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.insts)

    def __getitem__(self, index: int) -> Instruction:
        return self.insts[index]

    def _before_postproc(self) -> list[Instruction]:
        names = [inst.name for inst in self.insts]
        return self.insts[: names.index("enter_postproc")] if "enter_postproc" in names else self.insts

    def simplified(self, remove_postproc: bool = False) -> Trace:
        """This trace without what nothing needs: primitives that only look, and whose results no other takes."""
        kept: list[Instruction] = []
        used: set[Handle] = set()
        for inst in reversed(self._before_postproc() if remove_postproc else self.insts):
            known = find(inst.name)
            looks = known is not None and known.only_looks and signatures()[inst.name].result != "none"
            if looks and not any(result in used for result in inst.results):
                continue
            kept.append(inst)
            # The same place has the same handle: before this it need not be given.
            used.difference_update(inst.results)
            used.update(handles_in(list(inst.arguments.values())))
        return Trace(kept[::-1], {inst: self.decisions[inst] for inst in kept if inst in self.decisions})

    def apply_to_schedule(
        self, sch: Schedule, remove_postproc: bool = False, decision_provider: DecisionProvider | None = None
    ) -> None:
        """Applies all of it to another schedule. Raises ScheduleError where a primitive is refused there."""
        values: dict[Handle, Any] = {}
        for inst in self._before_postproc() if remove_postproc else self.insts:
            arguments = {
                name: map_argument(value, lambda v: _renewed(v, values)) for name, value in inst.arguments.items()
            }
            decision = self.decisions.get(inst)
            if decision is not None:
                if decision_provider is not None:
                    inputs = [map_argument(value, lambda v: _renewed(v, values)) for value in inst.inputs]
                    decision = decision_provider(inst, inputs, inst.attrs, decision)
                arguments["decision"] = decision
            variadic = signatures()[inst.name].variadic
            positional: list[Any] = [] if variadic is None else list(arguments.pop(variadic.name, ()))
            result: Any = sch.apply(inst.name, positional, arguments)
            given: list[Any] = cast("list[Any]", result) if isinstance(result, list) else [result]
            if len(inst.results) > len(given):
                raise refuse(
                    None,
                    f"{inst.name} gives {len(given)} results here, but the trace has {len(inst.results)} of them",
                    "the trace is of another program",
                )
            values.update(zip(inst.results, given, strict=False))

    def as_script(self, name: str = "apply_trace", target: str | None = None, *, full: bool = False) -> ScriptOp:
        """Returns the trace as a script of the schedule dialect.

        With `full`, as TVM prints traces: every argument by name, with its default, results numbered by kind; otherwise with
        the arguments that were passed, and results named after the blocks and loops in the program.
        """
        return _ScriptBuilder(self, full).script(name, target)

    def as_python(self, remove_postproc: bool = False) -> list[str]:
        """Returns the calls that apply the trace, each a line: `l1, l2 = sch.get_loops(block=b0)`."""
        from ....parser.schedule.printer import ScriptPrinter

        shown = Trace(self._before_postproc(), self.decisions) if remove_postproc else self
        return ScriptPrinter(tuples=True).lines(shown.as_script(full=True))

    def as_json(self, remove_postproc: bool = False) -> list[Any]:
        """Returns the trace as data in TVM's form: the instructions, then the decisions.

            [[["GetBlock", [], ["C", "main"], ["b0"]], ["SamplePerfectTile", ["l1"], [2, 16], ["v2", "v3"]]], [[1, [4, 4]]]]

        Handles are names, strings among the inputs are quoted, lambdas are their text.
        """
        return _to_json(Trace(self._before_postproc(), self.decisions) if remove_postproc else self)

    @staticmethod
    def from_json(data: Sequence[Any]) -> Trace:
        """Returns the trace that `as_json` describes. Raises MirError for data that is not a trace."""
        return Trace(*_instructions(data))

    @staticmethod
    def apply_json_to_schedule(json_obj: Sequence[Any], sch: Schedule) -> None:
        """Applies a trace in the form of `as_json`. Raises MirError for other data and for what is refused."""
        Trace.from_json(json_obj).apply_to_schedule(sch)

    def __str__(self) -> str:
        from ....parser.schedule.printer import print_trace

        return print_trace(self.as_script(full=True))

    __repr__ = __str__

    def show(self, style: str | None = None, black_format: bool | None = None) -> None:
        """Prints the trace, without colors: `style` and `black_format` are TVM's."""
        print(self)


def map_argument(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """Applies `leaf` to an argument, or to the items of one that is a list, tuple or dictionary."""
    if isinstance(value, list | tuple):
        items = [map_argument(item, leaf) for item in cast("Sequence[Any]", value)]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {key: map_argument(item, leaf) for key, item in cast("dict[Any, Any]", value).items()}
    return leaf(value)


def handles_in(value: Any) -> Iterator[Handle]:
    """Yields the handles in an argument."""
    if isinstance(value, ComputedRV):
        yield from value.drawn()
    elif isinstance(value, Handle):
        yield value
    elif isinstance(value, list | tuple):
        for item in cast("Sequence[Any]", value):
            yield from handles_in(item)
    elif isinstance(value, dict):
        yield from handles_in(list(cast("dict[Any, Any]", value).values()))


def _renewed(value: Any, values: Mapping[Handle, Any]) -> Any:
    """Returns a handle of another schedule for a recorded one, and the function of a recorded map."""
    if isinstance(value, ComputedRV):
        return value.renewed(lambda drawn: _renewed(drawn, values))
    if isinstance(value, Handle):
        if value not in values:
            raise unknown_handle(value)
        return values[value]
    return value.function if isinstance(value, RecordedMap) else value


_LEFT_OUT = frozenset(["func_name", "consumer_blocks", "decision"])
"""Arguments that TVM's traces do not have where they are None."""


class _ScriptBuilder:
    """Makes a script of a trace."""

    def __init__(self, trace: Trace, full: bool):
        self.trace, self.full = trace, full
        self.values: dict[Handle, SSAValue] = {}
        self.count = 0
        self.block = Block()

    def script(self, name: str, target: str | None) -> ScriptOp:
        for inst in self.trace.insts:
            self.block.add_op(self.op(inst))
        return ScriptOp(name, Region(self.block), target)

    def op(self, inst: Instruction) -> Operation:
        """Builds the op of one instruction."""
        known = signatures()[inst.name]
        given = self.trace.arguments_of(inst)
        if self.full:
            given = {**inst.stated(), **given}
            filled = known.with_defaults(given)
            given = {name: value for name, value in filled.items() if value is not None or name not in _LEFT_OUT}
        arguments = {name: map_argument(value, self.argument) for name, value in given.items()}
        names = [self.name(result, label) for result, label in zip(inst.results, inst.labels, strict=True)]
        types = result_types(known, [False] * len(names))
        try:
            op = primitive_class(inst.name)(arguments, types, positional=self.positional(known, arguments), names=names)
        except SignatureError as error:
            raise refuse(None, f"{inst.name} has no text: {error.message}", error.note) from None
        self.values.update(zip(inst.results, op.outs, strict=True))
        return op

    def positional(self, known: Signature, arguments: Mapping[str, Argument]) -> int:
        """Returns the number of positional arguments: in readable form leading handles and a block's name."""
        if known.variadic is not None:
            return 1
        if self.full:
            return 0
        count = 0
        for parameter, (name, value) in zip(known.parameters, arguments.items(), strict=False):
            plain = isinstance(value, Ref) or (count == 0 and isinstance(value, str))
            if parameter.name != name or not plain:
                break
            count += 1
        return count

    def name(self, result: Any, label: str) -> str:
        """Returns the name of a result."""
        if self.full or not label.isidentifier():
            letter = "b" if isinstance(result, BlockRV) else "l" if isinstance(result, LoopRV) else "v"
            self.count += 1
            return f"{letter}{self.count - 1}"
        return label

    def argument(self, value: Any) -> Argument:
        """Returns an argument as scripts hold it."""
        if isinstance(value, ComputedRV):
            op = ComputeOp(value.op, self.argument(value.left), self.argument(value.right))
            self.block.add_op(op)
            return Ref(op.result)
        if isinstance(value, Handle):
            if value not in self.values:
                raise unknown_handle(value)
            return Ref(self.values[value])
        return value.to_lambda() if isinstance(value, RecordedMap) else value


# Traces as data, in the form of TVM's records of tuning

_PREFIXES = {"block": "b", "loop": "l", "expr": "v"}
_NEW = {"b": BlockRV, "l": LoopRV, "v": lambda: ExprRV(1)}
_FORM = "a trace is [[[kind, inputs, attributes, outputs], …], [[number of the instruction, decision], …]]"


def _to_json(trace: Trace) -> list[Any]:
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
    if isinstance(value, ComputedRV):
        left, right = (_written(side, names, quoted) for side in (value.left, value.right))
        return f"({left} {value.op} {right})"
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


def _instructions(data: Sequence[Any]) -> tuple[list[Instruction], dict[Instruction, Any]]:
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
        if value.startswith('"'):
            return value[1:-1]
        return _computed(ast.parse(value, mode="eval").body, handles) if value.startswith("(") else handles[value]
    return RecordedMap(_read_lambda(value)) if value.startswith("lambda") else value


def _read_lambda(text: str) -> LambdaMap:
    from ....parser import parse_mir

    module = parse_mir(f"@T.schedule\ndef f(sch):\n    sch.transform_block_layout('B', {text})\n", "<lambda>")
    (script,) = module.body.block.ops
    (call,) = script.regions[0].block.ops
    return LambdaMap(cast("Lambda", call.bound["index_map"]))  # type: ignore[attr-defined]


_OPERATORS: Mapping[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}


def _computed(node: ast.expr, handles: Mapping[str, Handle]) -> Any:
    """Returns the arithmetic on drawn numbers that a text is. Raises ValueError for any other text."""
    match node:
        case ast.Name():
            return handles[node.id]
        case ast.Constant(value=int()):
            return node.value
        case ast.BinOp() if type(node.op) in _OPERATORS:
            left, right = _computed(node.left, handles), _computed(node.right, handles)
            return ComputedRV(_OPERATORS[type(node.op)], left, right)
        case _:
            raise ValueError(ast.dump(node))
