"""A rule's syntax tree. `at` is the offset of the text where a node begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Wildcard:
    """`_`."""

    at: int


@dataclass(frozen=True, slots=True)
class Name:
    """A name; each kind is a class of its own."""

    at: int
    name: str


class Local(Name):
    """`%x`."""


class Run(Name):
    """`%xs...`."""


class Attr(Name):
    """`$a`."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a string, True, False, None."""

    at: int
    value: int | float | str | bool | None


@dataclass(frozen=True, slots=True)
class Named:
    """`%m = …`."""

    at: int
    name: str
    value: Node


@dataclass(frozen=True, slots=True)
class Tuple:
    """`(a, b)`, or `[a, b]` where `brackets`."""

    at: int
    items: Sequence[Node]
    brackets: bool = False


@dataclass(frozen=True, slots=True)
class RuleCallee:
    """A call's callee: one name, one of several, or `$op`; `capture` is the `$op` of `[add, subtract]$op`."""

    at: int
    names: Sequence[str]
    capture: str | None = None


@dataclass(frozen=True, slots=True)
class RuleCall:
    """`add(%x, axis=1, **$rest)`; `rest` is "" for `**_`."""

    at: int
    callee: RuleCallee
    args: Sequence[Node]
    keywords: Sequence[tuple[int, str, Node]]
    rest: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True)
class RuleMember:
    """`%x.shape`."""

    at: int
    value: Node
    name: str


@dataclass(frozen=True, slots=True)
class Field:
    """`%t.0`."""

    at: int
    value: Node
    index: int


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator by its function's name: add, and_, not_, getitem, slice, …"""

    at: int
    function: str
    args: Sequence[Node]


Node: TypeAlias = Local | Run | Attr | Wildcard | Literal | Named | Tuple | RuleCall | RuleMember | Field | Operation


@dataclass(frozen=True, slots=True)
class Bind:
    """`$s = …` of a where clause."""

    at: int
    name: str
    value: Node


@dataclass(frozen=True, slots=True)
class Header:
    """`fast`, `benefit(2)`, `for tir`."""

    benefit: int | None = None
    level: str | None = None
    fast: bool = False


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A whole rule."""

    at: int
    name: str
    header: Header
    lhs: Sequence[Node]
    rhs: Sequence[Node]
    where: Sequence[Node | Bind]


@dataclass(frozen=True, slots=True)
class KernelRule:
    """`optional rule for nn.dense(%x, %w) where $rows = 4`: the kernels that a schedule is for."""

    at: int
    benefit: int
    patterns: Sequence[Node]
    where: Sequence[Node | Bind]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Ruleset:
    """A set: its own rules, and the names of the sets that it includes."""

    at: int
    name: str
    header: Header
    includes: Sequence[tuple[int, str]]
    rules: Sequence[Rewrite]


@dataclass(frozen=True, slots=True)
class Declared:
    """One of an operator's parameters: `%x: Tensor`, `%xs...`, `alpha: float? = 1.0`.

    A value has a `type` and no `kind`, an attribute a kind, which may be "", and perhaps a default.
    """

    at: int
    name: str
    type: str = ""
    is_tuple: bool = False
    kind: str | None = None
    nullable: bool = False
    default: Node | None = None


@dataclass(frozen=True, slots=True)
class Clause:
    """`type identity`, `compute @f, @g`, `gradient multiply(%gradient, %x)`; at the word."""

    at: int
    word: str
    names: Sequence[tuple[int, str]] = ()
    values: Sequence[Node] = ()


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of one's own."""

    at: int
    name: str
    parameters: Sequence[Declared]
    result: str
    clauses: Sequence[Clause]
