"""The syntax tree of a TE function. `at` is the place in the item's text that a message about the node points to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(slots=True)
class Name:
    at: int
    name: str


@dataclass(slots=True)
class Literal:
    """A number, a string, True, False or None."""

    at: int
    value: int | float | str | bool | None


@dataclass(slots=True)
class Display:
    """A tuple, or a list in square brackets; items may be `Starred`."""

    at: int
    items: list[Expr]
    is_list: bool


@dataclass(slots=True)
class DictDisplay:
    at: int
    pairs: list[tuple[Expr, Expr]]


@dataclass(slots=True)
class Starred:
    """`*x` among items or arguments."""

    at: int
    value: Expr


@dataclass(slots=True)
class Slice:
    at: int
    start: Expr | None
    stop: Expr | None


@dataclass(slots=True)
class Binary:
    """`left op right`; `grouped` when it stands in parentheses."""

    at: int
    op: str
    left: Expr
    right: Expr
    grouped: bool = False


@dataclass(slots=True)
class Unary:
    at: int
    op: str
    operand: Expr


@dataclass(slots=True)
class Connective:
    """`a and b`, `a or b`."""

    at: int
    op: str
    left: Expr
    right: Expr


@dataclass(slots=True)
class Conditional:
    """`a if condition else b`."""

    at: int
    condition: Expr
    then: Expr
    orelse: Expr


@dataclass(slots=True)
class Attribute:
    at: int
    base: Expr
    name: str


@dataclass(slots=True)
class Index:
    """`base[items]`; `is_tuple` where a comma stands behind a single item."""

    at: int
    base: Expr
    items: list[Expr]
    is_tuple: bool = False


@dataclass(slots=True)
class Call:
    at: int
    function: Expr
    arguments: list[Expr]
    keywords: list[tuple[str, Expr]] = field(default_factory=lambda: [])


@dataclass(slots=True)
class Lambda:
    """`lambda i, *j: body`; `rest` is the name behind the star."""

    at: int
    params: list[str]
    rest: str | None
    body: Expr


Expr: TypeAlias = (
    Name
    | Literal
    | Display
    | DictDisplay
    | Starred
    | Slice
    | Binary
    | Unary
    | Connective
    | Conditional
    | Attribute
    | Index
    | Call
    | Lambda
)


@dataclass(slots=True)
class Assign:
    """`targets[0] = targets[1] = … = value`."""

    at: int
    targets: list[Expr]
    value: Expr


@dataclass(slots=True)
class Augmented:
    at: int
    op: str
    target: Expr
    value: Expr


@dataclass(slots=True)
class Return:
    at: int
    value: Expr | None


@dataclass(slots=True)
class Evaluate:
    at: int
    value: Expr


@dataclass(slots=True)
class Pass:
    at: int


@dataclass(slots=True)
class For:
    at: int
    target: Expr
    iterable: Expr
    body: list[Stmt]


@dataclass(slots=True)
class If:
    at: int
    condition: Expr
    body: list[Stmt]
    orelse: list[Stmt]


@dataclass(slots=True)
class With:
    at: int
    context: Expr
    target: Expr | None
    body: list[Stmt]


@dataclass(slots=True)
class Function:
    at: int
    name: str
    params: list[str]
    rest: str | None
    body: list[Stmt]
    decorators: list[Expr] = field(default_factory=lambda: [])


Stmt: TypeAlias = Assign | Augmented | Return | Evaluate | Pass | For | If | With | Function
