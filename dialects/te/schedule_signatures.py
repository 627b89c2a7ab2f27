"""The table of primitives: name, parameters and results of each, and what it does to a program.

From here come the ops of the `te` dialect, what the text may call, and how a schedule is printed. `lowering.te.schedule` carries
primitives out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

# `owner.name(parameter: kind = default, …) -> results`. A star marks the parameter that takes all positional arguments; a kind in
# brackets is a list of such, which for one may be written without brackets. `tensors` gives as many as there are.
_TABLE = """
stage.split(parent: axis, factor: expr = None, nparts: expr = None) -> axis, axis
stage.fuse(*args: axis) -> axis
stage.reorder(*args: axis) -> none
stage.tile(x_parent: axis, y_parent: axis, x_factor: expr, y_factor: expr) -> axis, axis, axis, axis
stage.bind(ivar: axis, thread_ivar: axis) -> none
stage.env_threads(threads: [axis]) -> none
stage.set_scope(scope: str) -> none
stage.set_store_predicate(predicate: expr) -> none
stage.compute_at(parent: stage, scope: axis) -> none
stage.compute_inline() -> none
stage.compute_root() -> none
stage.vectorize(var: axis) -> none
stage.unroll(var: axis) -> none
stage.parallel(var: axis) -> none
stage.pragma(var: axis, pragma_type: str, pragma_value: literal = None) -> none
stage.prefetch(tensor: tensor, var: axis, offset: expr) -> none
stage.storage_align(axis: axis, factor: int, offset: int) -> none
stage.double_buffer() -> none
schedule.create_group(outputs: [tensor], inputs: [tensor], include_inputs: bool = False) -> stage
schedule.cache_read(tensor: tensor, scope: str, readers: [tensor]) -> tensor
schedule.cache_write(tensor: [tensor], scope: str) -> tensors
schedule.rfactor(tensor: tensor, axis: axis, factor_axis: int = 0) -> tensors
"""

HANDLES = ("axis", "stage", "tensor")
"""Kinds of what a schedule works on."""
REQUIRED = object()


@dataclass(frozen=True)
class Parameter:
    """A parameter: `kind` is axis, stage, tensor, expr, str, int, bool or literal (a number or string)."""

    name: str
    kind: str
    default: object = REQUIRED
    is_list: bool = False
    takes_all: bool = False

    @property
    def is_operand(self) -> bool:
        """Whether what is given is a value of the IR, not an attribute."""
        return self.kind in (*HANDLES, "expr")


@dataclass(frozen=True)
class Signature:
    """A primitive: what owns it (`stage` or `schedule`), parameters, and the kinds of its results ("tensors": one or more)."""

    name: str
    owner: str
    parameters: tuple[Parameter, ...]
    results: tuple[str, ...]

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of that name."""
        return next((p for p in self.parameters if p.name == name), None)


_LINE = re.compile(r"(\w+)\.(\w+)\((.*)\) -> (.*)")
_DEFAULTS: dict[str, object] = {"None": None, "False": False, "0": 0}


@cache
def signatures() -> dict[str, Signature]:
    """Every primitive by name."""
    found: dict[str, Signature] = {}
    for line in _TABLE.strip().splitlines():
        match = _LINE.fullmatch(line)
        assert match is not None
        owner, name, parameters, results = match.groups()
        made = tuple(_parameter(text) for text in parameters.split(", ") if text)
        found[name] = Signature(name, owner, made, tuple(r for r in results.split(", ") if r != "none"))
    return found


def _parameter(text: str) -> Parameter:
    head, _, default = text.partition(" = ")
    name, kind = head.split(": ")
    return Parameter(
        name.lstrip("*"),
        kind.strip("[]"),
        _DEFAULTS[default] if default else REQUIRED,
        is_list=kind.startswith("["),
        takes_all=name.startswith("*"),
    )
