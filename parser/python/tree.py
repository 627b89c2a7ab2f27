"""The syntax tree of Python. Names, numbers and strings stay the lexer's tokens, with their offsets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


class Token(str):
    """A name, number, string or operator as the text spells it, at offset `start`.

    `start` is -1 for a token that is not from the text.
    """

    __slots__ = ("start", "type")

    type: str
    start: int

    def __new__(cls, type: str, text: str, start: int = -1) -> Token:
        token = str.__new__(cls, text)
        token.type = type
        token.start = start
        return token


@dataclass(slots=True)
class Binary:
    """`left op right`; a chained comparison is already the conjunction that it means."""

    op: Token
    left: Expr
    right: Expr


@dataclass(slots=True)
class Unary:
    """`-x`, `~x`, `not x`, `*x`."""

    op: Token
    operand: Expr


@dataclass(slots=True)
class Keyword:
    """`name=value` among a call's arguments."""

    name: Token
    value: Expr


@dataclass(slots=True)
class Call:
    """`function(arguments)`."""

    function: Expr
    arguments: list[Expr]
    keywords: list[Keyword]


@dataclass(slots=True)
class Index:
    """`base[items]`; `A[()]` has no items."""

    base: Expr
    items: list[Expr]


@dataclass(slots=True)
class Member:
    """`base.name` where base is not a name (`A.data` is one token)."""

    base: Expr
    name: Token


@dataclass(slots=True)
class Slice:
    """`start:stop:step` in an index; `colon` is the first colon's offset."""

    start: Expr | None
    stop: Expr | None
    step: Expr | None
    colon: int = -1


@dataclass(slots=True)
class Sequence:
    """A tuple, or a list in square brackets; `bracket` is its offset, -1 for a tuple with items."""

    items: list[Expr]
    is_list: bool = False
    bracket: int = -1


@dataclass(slots=True)
class Mapping:
    """`{key: value, …}`; `brace` is the offset of the first one."""

    pairs: list[tuple[Expr, Expr]]
    brace: int = -1


@dataclass(slots=True)
class Lambda:
    """`lambda x, *y: body`; the type of a parameter with a star is "STAR"."""

    token: Token
    parameters: list[Token]
    body: Expr


@dataclass(slots=True)
class Conditional:
    """`then if condition else orelse`."""

    token: Token
    condition: Expr
    then: Expr
    orelse: Expr


@dataclass(slots=True)
class Captured:
    """A name (or more) of the Python around the text, with its value, which has no literal."""

    token: Token
    value: object


Expr: TypeAlias = (
    Token | Binary | Unary | Call | Index | Member | Slice | Sequence | Mapping | Lambda | Conditional | Captured
)


@dataclass(slots=True)
class For:
    token: Token
    target: Expr
    iterable: Expr
    body: list[Stmt]


@dataclass(slots=True)
class While:
    token: Token
    condition: Expr
    body: list[Stmt]


@dataclass(slots=True)
class If:
    token: Token
    condition: Expr
    body: list[Stmt]
    orelse: list[Stmt]


@dataclass(slots=True)
class With:
    token: Token
    items: list[tuple[Expr, Expr | None]]
    body: list[Stmt]


@dataclass(slots=True)
class Assign:
    """`target = value`; `more` are the targets after the first in `a = b = value`."""

    target: Expr
    token: Token
    value: Expr
    more: list[Expr] = field(default_factory=list["Expr"])


@dataclass(slots=True)
class Augmented:
    """`target += value`, and its like."""

    target: Expr
    token: Token
    value: Expr


@dataclass(slots=True)
class Annotated:
    """`target: annotation = value`; no value in a bare declaration."""

    target: Expr
    annotation: Expr
    value: Expr | None


@dataclass(slots=True)
class Assert:
    token: Token
    condition: Expr
    message: Expr | None


@dataclass(slots=True)
class Return:
    token: Token
    value: Expr | None


@dataclass(slots=True)
class Expression:
    value: Expr


@dataclass(slots=True)
class Parameter:
    """The type of a name with a star is "STAR"."""

    name: Token
    annotation: Expr | None


@dataclass(slots=True)
class Function:
    """A function; `token` is its `def`."""

    decorators: list[Expr]
    token: Token
    name: Token
    parameters: list[Parameter]
    result: Expr | None
    body: list[Stmt]


Stmt: TypeAlias = For | While | If | With | Assign | Augmented | Annotated | Assert | Return | Expression | Function


@dataclass(slots=True)
class Module:
    decorators: list[Expr]
    name: Token
    members: list[Function | Stmt]


def token_of(node: Expr) -> Token | None:
    """Returns the token that messages name for a node; None for `()`, `[]` and `{}`.

    It is an operator's own token, otherwise the node's first one.
    """
    while True:
        match node:
            case Token():
                return node
            case Binary() | Unary():
                return node.op
            case Call():
                node = node.function
            case Index() | Member():
                node = node.base
            case Lambda() | Conditional() | Captured():
                return node.token
            case Sequence():
                if not node.items:
                    return None
                node = node.items[0]
            case Mapping():
                if not node.pairs:
                    return None
                node = node.pairs[0][0]
            case Slice():
                inner = node.start or node.stop or node.step
                if inner is None:
                    return None
                node = inner


def first_token(statement: Stmt) -> Token | None:
    """The token at which a statement is reported."""
    match statement:
        case Assign() | Augmented() | Annotated():
            return token_of(statement.target)
        case Expression():
            return token_of(statement.value)
        case _:
            return statement.token


def place_of(node: Expr | Stmt) -> int:
    """The offset at which a node is reported: that of its operator, bracket or first token."""
    while True:
        match node:
            case Token():
                return node.start
            case Binary() | Unary():
                return node.op.start
            case Call():
                node = node.function
            case Index() | Member():
                node = node.base
            case Sequence():
                if node.bracket >= 0 or not node.items:
                    return node.bracket
                node = node.items[0]
            case Mapping():
                return node.brace
            case Slice():
                return node.colon
            case Assign() | Annotated():
                node = node.target
            case Expression():
                node = node.value
            case _:
                return node.token.start


def called(node: object) -> str:
    """The name of the function that an expression calls, or ""."""
    return str(node.function) if isinstance(node, Call) and isinstance(node.function, Token) else ""
