"""Syntax errors by example: what was written is recognised among common mistakes and answered with what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lark import Token, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from ...support.diagnostics import Diagnostic, MirError

if TYPE_CHECKING:
    from ..items import Item

# What is wrong, what to write, and texts with just that mistake as their first error.
_EXAMPLES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "a ':' is missing before the body",
        "for, while, if, else, with, def and class lines end with ':'",
        (
            "@T.prim_func\ndef f(a):\n    for i in range(8)\n        pass\n",
            "@T.prim_func\ndef f(a):\n    with T.block('B')\n        pass\n",
            "@T.prim_func\ndef f(a):\n    with T.block('B') as b\n        pass\n",
            "@T.prim_func\ndef f(a):\n    if a < b\n        pass\n",
            "@T.prim_func\ndef f(a):\n    if f(a)\n        pass\n",
            "@T.prim_func\ndef f(a):\n    while a < b\n        pass\n",
            "@T.prim_func\ndef f(a):\n    if a:\n        pass\n    else\n        pass\n",
            "@T.prim_func\ndef f(a)\n    pass\n",
            "@I.ir_module\nclass M\n    pass\n",
        ),
    ),
    (
        "the body is missing",
        "indent it under the line that ends with ':'; an empty body is written 'pass'",
        (
            "@T.prim_func\ndef f(a):\n    for i in range(8):\n    A[i] = 1\n",
            "@T.prim_func\ndef f(a):\n    with T.block('B'):\n    A[i] = 1\n",
            "@T.prim_func\ndef f(a):\n    for i in range(8):\n",
            "@T.prim_func\ndef f(a):\n    if a:\n    A[i] = 1\n",
            "@T.prim_func\ndef f(a):\n    if a:\n        pass\n    else:\n    A[i] = 1\n",
            "@T.prim_func\ndef f(a):\nA[i] = 1\n",
            "@T.prim_func\ndef f(a):\n",
            "@I.ir_module\nclass M:\n@T.prim_func\ndef f(a):\n    pass\n",
        ),
    ),
    (
        "this line is indented more than the one above it",
        "only the body of a for, while, if, else, with, def or class is indented further",
        (
            "@T.prim_func\ndef f(a):\n    A[i] = 1\n        A[i] = 1\n",
            "@T.prim_func\ndef f(a):\n    x(1)\n        A[i] = 1\n",
            "@T.prim_func\ndef f(a):\n    for i in x:\n        pass\n            pass\n",
        ),
    ),
    (
        "'=' assigns, it does not compare",
        "write '==' to compare",
        (
            "@T.prim_func\ndef f(a):\n    if a = b:\n        pass\n",
            "@T.prim_func\ndef f(a):\n    if a[i] = b:\n        pass\n",
            "@T.prim_func\ndef f(a):\n    while a = b:\n        pass\n",
            "@T.prim_func\ndef f(a):\n    assert a = b\n",
        ),
    ),
    (
        "TVMScript has no 'a if condition else b'",
        "write T.if_then_else(condition, a, b), which evaluates only the side chosen, or T.Select(condition, a, b)",
        (
            "@T.prim_func\ndef f(a):\n    A[i] = a if b else c\n",
            "@T.prim_func\ndef f(a):\n    A[i] = g(a if b else c)\n",
            "@T.prim_func\ndef f(a):\n    A[i] = (a if b else c)\n",
            "@T.prim_func\ndef f(a):\n    A[i] = a + b if b else c\n",
            "@T.prim_func\ndef f(a):\n    A[i] = (a + b if b else c)\n",
        ),
    ),
    (
        "an operand is missing",
        "an operator stands between two expressions",
        (
            "@T.prim_func\ndef f(a):\n    A[i] = a +\n",
            "@T.prim_func\ndef f(a):\n    A[i] = (a + )\n",
            "@T.prim_func\ndef f(a):\n    A[i] = g(a, * b)\n",
            "@T.prim_func\ndef f(a):\n    A[i + ] = a\n",
            "@T.prim_func\ndef f(a):\n    A[i] = * a\n",
            "@T.prim_func\ndef f(a):\n    A[i] =\n",
            "@T.prim_func\ndef f(a):\n    A[i] = not\n",
        ),
    ),
    (
        "an operator or a comma is missing between two expressions",
        "values in a list are separated by ',', products are written with '*'",
        (
            "@T.prim_func\ndef f(a):\n    A[i] = a b\n",
            "@T.prim_func\ndef f(a):\n    A[i] = 2 b\n",
            "@T.prim_func\ndef f(a):\n    A[i] = g(a) b\n",
            "@T.prim_func\ndef f(a):\n    A[i] = g(a b)\n",
            "@T.prim_func\ndef f(a):\n    A[i] = g(a 1)\n",
            '@T.prim_func\ndef f(a):\n    A[i] = g(a "b")\n',
            '@T.prim_func\ndef f(a):\n    A[i] = g((a,) "b")\n',
            "@T.prim_func\ndef f(a):\n    A[i j] = 1\n",
            "@T.prim_func\ndef f(a):\n    A[i] = [a b]\n",
            "@T.prim_func\ndef f(a):\n    A[i] = (a b)\n",
            "@T.prim_func\ndef f(a b):\n    pass\n",
        ),
    ),
    (
        "'else' or 'elif' without its 'if'",
        "it belongs directly under an if's body, at the column of the 'if'",
        (
            "@T.prim_func\ndef f(a):\n    else:\n        pass\n",
            "@T.prim_func\ndef f(a):\n    A[i] = 1\n    else:\n        pass\n",
            "@T.prim_func\ndef f(a):\n    elif a:\n        pass\n",
        ),
    ),
    (
        "a function is not defined inside another one here",
        "define it beside this one, in the same class, and call it as Module.name(…)",
        ("@T.prim_func\ndef f(a):\n    def g():\n        pass\n", "@T.prim_func\ndef f(a):\n    @T.prim_func\n    def g():\n        pass\n"),
    ),
    (
        "a function in a module needs a decorator",
        "write @T.prim_func above 'def'",
        ("@I.ir_module\nclass M:\n    def f():\n        pass\n",),
    ),
)  # fmt: skip

_CLOSER = {"LPAR": ")", "LSQB": "]", "LBRACE": "}"}
# Words of Python that no TVMScript uses.
_FOREIGN = {
    "import": "imports stand at the top of the file",
    "from": "imports stand at the top of the file",
    "try": "a program cannot catch errors",
    "raise": "write assert condition, \"message\"",
    "break": "leave a loop by its condition: write a while loop",
    "continue": "put the rest of the body under an if",
    "def": "functions are not nested",
    "yield": "a prim_func returns at most one scalar, with return",
    "del": "a buffer lives until the end of its block",
    "is": "write '==' to compare",
    "global": "write a buffer to share a value",
    "async": "write T.attr(0, \"async_scope\", 1)",
}  # fmt: skip


def syntax_error(
    error: UnexpectedToken | UnexpectedCharacters,
    item: Item,
    brackets: list[Token],
    reject: Callable[[str], UnexpectedInput | None],
) -> MirError:
    """The error in the user's terms. `brackets` are those still open; `reject` parses an example and gives its error."""
    line, column = max(error.line, 1), max(error.column, 1)
    if isinstance(error, UnexpectedToken):
        token = error.token
        if token.type in ("$END", "_DEDENT", "_NL", "_INDENT") or line < 1:
            line, column = _end_of_code(item, token, line)
        found = token.strip()
    else:
        found = error.char
    if brackets and (found == "" or line > (brackets[-1].line or 0)):
        opened = brackets[-1]
        diagnostic = Diagnostic(
            f"this '{opened}' is never closed", item.location(opened.line or 1, opened.column or 1)
        ).with_note(f"expected '{_CLOSER[opened.type]}' before this", item.location(line, column))
        return MirError(diagnostic)
    place = item.location(line, column)
    message, note = _explain(error, found, item, line, column, reject)
    return MirError(Diagnostic(message, place).with_note(note) if note else Diagnostic(message, place))


def _end_of_code(item: Item, token: Token, line: int) -> tuple[int, int]:
    """Where the code before a line end, or the text, ends."""
    lines = item.text.split("\n")
    if token.type == "_INDENT" and token.end_line is not None and token.end_line <= len(lines):
        text = lines[token.end_line - 1]
        return token.end_line, len(text) - len(text.lstrip()) + 1
    at = min(line if line >= 1 and token.type != "$END" else len(lines), len(lines))
    while at > 1 and not lines[at - 1].split("#")[0].strip():
        at -= 1
    if token.type == "_NL" and token.column is not None and at == line:
        return at, len(lines[at - 1][: token.column - 1].rstrip()) + 1
    return at, len(lines[at - 1].rstrip()) + 1


def _explain(
    error: UnexpectedToken | UnexpectedCharacters,
    found: str,
    item: Item,
    line: int,
    column: int,
    reject: Callable[[str], UnexpectedInput | None],
) -> tuple[str, str]:
    if isinstance(error, UnexpectedCharacters):
        if found in "\"'":
            return "this string is never closed", f"write {found} at its end, on the same line"
        if found == ")" or found == "]" or found == "}":
            return f"this '{found}' closes nothing", "remove it, or open the bracket before"
    elif error.token.type in ("RPAR", "RSQB", "RBRACE") and not _expects_operand(error):
        return (
            f"this '{found}' does not match the bracket that is open",
            "close brackets in the order they were opened, inner first",
        )
    word = _word_at(item, line, column)
    before = item.text.split("\n")[line - 1][: column - 1].split()
    for candidate in (word, before[-1] if before else ""):
        if candidate in _FOREIGN:
            return f"'{candidate}' has no place in TVMScript", _FOREIGN[candidate]
    for message, note, examples in _EXAMPLES:
        for example in examples:
            other = reject(example)
            if other is not None and _alike(error, other):
                return message, note
    what = f"unexpected '{found}'" if found else "the line ends too early"
    expected = _expected(error)
    return what, f"expected {expected}" if expected else ""


def _alike(error: UnexpectedInput, example: UnexpectedInput) -> bool:
    """The same mistake: the parser in the same state, stumbling over the same kind of token."""
    if error.state != example.state or type(error) is not type(example):
        # States of the interactive parser compare by value of the state stack's top.
        return False
    if isinstance(error, UnexpectedToken) and isinstance(example, UnexpectedToken):
        return error.token.type == example.token.type
    return (
        isinstance(error, UnexpectedCharacters)
        and isinstance(example, UnexpectedCharacters)
        and error.char == example.char
    )


def _expects_operand(error: UnexpectedToken) -> bool:
    return "NAME" in error.accepts if error.accepts is not None else "NAME" in error.expected


def _word_at(item: Item, line: int, column: int) -> str:
    text = item.text.split("\n")[line - 1][column - 1 :]
    length = 0
    while length < len(text) and (text[length].isalnum() or text[length] == "_"):
        length += 1
    return text[:length]


_SPOKEN = {
    "NAME": "a name", "NUMBER": "a number", "STRING": "a string", "OPERATOR": "an operator", "COMMA": "','", "RPAR": "')'",
    "RSQB": "']'", "RBRACE": "'}'", "LPAR": "'('", "COLON": "':'", "EQUALS": "'='", "_NL": "the end of the line", "IN": "'in'",
    "DEF": "'def'", "CLASS": "'class'", "AT": "a decorator", "_INDENT": "an indented body", "AS": "'as'",
}  # fmt: skip


def _expected(error: UnexpectedToken | UnexpectedCharacters) -> str:
    accepted = error.accepts or error.expected if isinstance(error, UnexpectedToken) else error.allowed
    names = [spoken for terminal, spoken in _SPOKEN.items() if terminal in (accepted or ())]
    if {"a name", "a number"} <= set(names):
        names = ["an expression"] + [n for n in names if n not in ("a name", "a number", "a string", "'('")]
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
