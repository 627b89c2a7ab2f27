"""Instructions of traces in TVM's form: a kind such as `Split`, with inputs, attributes, outputs.

    sch.split(l1, factors=[None, 4])   ↔   Split, inputs [l1, None, 4], attributes [True, False], outputs [l2, l3]

Inputs are handles and what goes wherever a handle does; all other arguments are attributes. Lists of loops and of factors are
spread over the inputs, a pair `("write", 0)` over two attributes: the number, and 1 for a buffer that is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from ....dialects.schedule import Signature, signatures
from .errors import refuse
from .random_variables import Handle

_SPELLED = {"rfactor": "RFactor", "reindex": "ReIndex", "unsafe_set_dtype": "UnsafeSetDType"}
_HANDLES = frozenset(["block", "loop", "expr"])
_INPUTS = {("annotate", "ann_val"), ("reorder_block_iter_var", "new_order")}
_SPREAD = frozenset(["factors", "loops", "ordered_loops"])
_NO_DECISION = "decision"
_BUFFER_KINDS = ("read", "write")


@dataclass(frozen=True)
class InstructionKind:
    """The primitive of an instruction, by TVM's name."""

    name: str

    @staticmethod
    def get(name: str) -> InstructionKind:
        """Returns the kind of that name: `GetBlock`, `Split`. Raises ScheduleError for any other."""
        if name not in _names_of_kinds():
            known = ", ".join(sorted(_names_of_kinds()))
            raise refuse(None, f"there is no kind of instruction '{name}'", f"there are {known}")
        return InstructionKind(name)

    @property
    def primitive(self) -> str:
        """The name of the primitive as a method."""
        return _names_of_kinds()[self.name]

    @property
    def is_pure(self) -> bool:
        """Returns whether the primitive leaves the program as it is."""
        from .primitive import find

        known = find(self.primitive)
        return (known is not None and known.only_looks) or self.primitive.startswith("sample_")


@cache
def _names_of_kinds() -> Mapping[str, str]:
    return {kind_name(name): name for name in signatures()}


def kind_name(primitive: str) -> str:
    """Returns TVM's name of a primitive's kind: `get_block` → `GetBlock`."""
    return _SPELLED.get(primitive) or "".join(word.capitalize() for word in primitive.split("_"))


class Instruction:
    """One primitive as it was applied: what a trace holds. Arguments hold handles where ops were meant.

    `labels` are what the results are called in the program, `function` is the function in which a block was found by name.
    """

    __slots__ = ("arguments", "function", "labels", "name", "results")

    name: str
    arguments: Mapping[str, Any]
    results: tuple[Any, ...]
    labels: tuple[str, ...]
    function: str | None

    def __init__(
        self, kind: InstructionKind | str, inputs: Sequence[Any], attrs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        """Makes the instruction of these parts. Raises ScheduleError where they do not fit the primitive."""
        name = (InstructionKind.get(kind) if isinstance(kind, str) else kind).primitive
        known = signatures()[name]
        if known.result == "none" and outputs:
            raise refuse(None, f"{kind_name(name)} has no outputs, but {len(outputs)} are given")
        arguments = _arguments(known, [*map(_plain, inputs)], [*map(_plain, attrs)])
        self._set(name, arguments, tuple(outputs), ("",) * len(outputs), None)

    @classmethod
    def applied(
        cls,
        name: str,
        arguments: Mapping[str, Any],
        results: Sequence[Any],
        labels: Sequence[str],
        function: str | None = None,
    ) -> Instruction:
        """Returns the instruction of a primitive with its arguments by name."""
        new = object.__new__(cls)
        new._set(name, arguments, tuple(results), tuple(labels), function)
        return new

    def _set(
        self,
        name: str,
        arguments: Mapping[str, Any],
        results: tuple[Any, ...],
        labels: tuple[str, ...],
        function: str | None,
    ) -> None:
        self.name, self.arguments, self.results, self.labels, self.function = name, arguments, results, labels, function

    def __repr__(self) -> str:
        return f"Instruction({self.kind.name})"

    @property
    def kind(self) -> InstructionKind:
        """The primitive by TVM's name."""
        return InstructionKind(kind_name(self.name))

    @property
    def inputs(self) -> list[Any]:
        """The handles and numbers that the primitive was given."""
        return [part for is_input, parts in self._parts() if is_input for part in parts]

    @property
    def attrs(self) -> list[Any]:
        """The other arguments of the primitive, with their defaults, without what it drew."""
        return [part for is_input, parts in self._parts() if not is_input for part in parts]

    @property
    def outputs(self) -> list[Any]:
        """The results of the primitive."""
        return list(self.results)

    def same_as(self, other: object) -> bool:
        """Returns whether `other` is this instruction."""
        return self is other

    def stated(self) -> dict[str, Any]:
        """Returns the arguments, with the function in which a block was found."""
        if self.function is None or self.arguments.get("func_name") is not None:
            return dict(self.arguments)
        return {**self.arguments, "func_name": self.function}

    def _parts(self) -> Iterator[tuple[bool, list[Any]]]:
        known = signatures()[self.name]
        arguments: dict[str, Any] = known.with_defaults(self.stated())
        for name, value in arguments.items():
            if name == _NO_DECISION:
                continue
            is_input = _is_input(known, name)
            if name in _SPREAD:
                yield is_input, list(value)
            elif _is_buffer(known, name):
                yield is_input, [value, None] if isinstance(value, str) else [value[1], _BUFFER_KINDS.index(value[0])]
            elif name == "consumer_blocks":
                yield is_input, [list(value or ())]
            else:
                yield is_input, [value]


def _plain(value: Any) -> Any:
    """Returns a number for an immediate of `tir`, in lists, too."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("Sequence[Any]", value)]
    return value.value if hasattr(value, "value") and hasattr(value, "dtype") else value


def _is_input(known: Signature, name: str) -> bool:
    kinds = known.by_name[name].kind
    words = set(kinds.replace("[", " ").replace("]", " ").split())
    return bool(words & _HANDLES) or (known.name, name) in _INPUTS


def _is_buffer(known: Signature, name: str) -> bool:
    return known.by_name[name].kind.startswith("pair[")


def _arguments(known: Signature, inputs: list[Any], attrs: list[Any]) -> dict[str, Any]:
    """Returns the arguments of a primitive by name. Raises ScheduleError for other parts than it has."""
    found: dict[str, Any] = {}
    for parameter in known.parameters:
        name = parameter.name
        if name == _NO_DECISION:
            continue
        parts = inputs if _is_input(known, name) else attrs
        if name in _SPREAD:
            found[name] = [*parts]
            parts.clear()
        elif not parts and not parameter.is_required:
            continue
        elif len(parts) < 1 + _is_buffer(known, name):
            what = "inputs" if parts is inputs else "attributes"
            raise refuse(None, f"{kind_name(known.name)} has too few {what}: '{name}' is missing", f"it is sch.{known}")
        elif _is_buffer(known, name):
            number, kind = parts.pop(0), parts.pop(0)
            found[name] = number if isinstance(number, str) else (_BUFFER_KINDS[int(kind)], number)
        else:
            value = parts.pop(0)
            found[name] = None if name == "consumer_blocks" and not value else value
    if inputs or attrs:
        raise refuse(
            None,
            f"{kind_name(known.name)} has {len(inputs)} inputs and {len(attrs)} attributes too many",
            f"it is sch.{known}",
        )
    return found


def unknown_handle(handle: Handle) -> Exception:
    """Returns the error for a handle that no primitive of a trace returned."""
    return refuse(
        None,
        f"the trace does not say where the handle {handle!r} comes from",
        "handles come from get_block and get_loops",
    )


__all__ = ["Instruction", "InstructionKind", "kind_name", "unknown_handle"]
