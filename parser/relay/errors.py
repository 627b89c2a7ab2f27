"""Explains syntax errors in the user's terms.

A mistake is recognised by example: each message lists fragments that make it, and the parser's state and token at the
error are compared with those that the fragments lead to. An error that no example explains lists the expected tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from ...support.text import did_you_mean
from ..lalr import BRACKETS, CLOSERS, END, Parser, ParsingTable, first_error, open_brackets
from .lexer import tokenize

# Message, notes, and programs whose first error is this one.
EXAMPLES: Sequence[tuple[tuple[str, ...], Sequence[str]]] = (
    (
        ("the block has no value: it ends with a binding", "its last line is the block's value, without semicolon: %0"),
        ("def @f() { %0 = 1; }", "def @f() { let %x = 1; }", "fn () { %0 = 1; }", "def @f() { add(1, 1); }"),
    ),
    (
        ("the block is empty", "a block's last line is its value; the empty tuple is written ()"),
        ("def @f() { }", "def @f() { if (True) { } else { 1 } }", "def @f() { if (True) { 1 } else { } }"),
    ),
    (
        ("an 'if' needs an 'else'", "both branches give the value: if (%c) { %a } else { %b }"),
        ("def @f() { if (True) { 1 } }", "def @f() { %0 = if (True) { 1 }; %0 }"),
    ),
    (
        ("a condition stands in parentheses", "it is written if (%c) { … } else { … }"),
        ("def @f() { if %x { 1 } else { 2 } }", "def @f() { if True { 1 } else { 2 } }", "def @f() { if add(1, 2)"),
    ),
    (
        ("a parameter's name begins with '%'", "parameters are written %x: Tensor[(2, 3), float32]"),
        (
            "def @f(x) { 1 }",
            "def @f(x: int32) { 1 }",
            "def @f(%x, y) { 1 }",
            "def @f(%x: int32, y) { 1 }",
            "def @f() { fn (x) { 1 } }",
        ),
    ),
    (
        ("a function's name begins with '@'", "it is written def @main(…) { … }"),
        ("def main() { 1 }", "def %main() { 1 }"),
    ),
    (
        ("a variable's name begins with '%'", "it is written let %x = …;"),
        ("def @f() { let x = 1; 1 }", "def @f() { let @x = 1; 1 }"),
    ),
    (
        ("a graph name cannot be bound by let", "write let %x = …; or %0 = …;"),
        ("def @f() { let %0 = 1; 1 }",),
    ),
    (
        ("only graph names, %0, are bound without let", "write let %x = …;"),
        ("def @f() { %x = 1; 1 }", "def @f() { %0 = 1; %x = 1; 1 }"),
    ),
    (
        ("a clause is written Pattern => { … }", "for example Cons(%x, _) => { %x }"),
        (
            "def @f() { match (%x) { Nil { 1 } } }",
            "def @f() { match (%x) { Cons(%a, %b) { 1 } } }",
        ),
    ),
    (
        ("a function's body is in braces", "it is written def @f(…) { … }"),
        (
            *(f"def @f() {value}" for value in ("%x", "%0", "1", "add(1, 1)", "(1, 2)", "@g")),
            *(f"def @f() -> int32 {value}" for value in ("%x", "1", "add(1, 1)")),
            *(f"def @f() {{ fn () {value} }}" for value in ("%x", "%0", "1", "add(1, 1)", "(1, 2)")),
        ),
    ),
    (
        ("the function has no body", "it is written def @f(…) -> … { … }"),
        ("def @f()", "def @f() -> int32", "def @f() def"),
    ),
)

_TENSOR = (
    "a tensor's type is written Tensor[(2, 3), float32]",
    "its shape stands in parentheses (numbers, or ? for what is known at run time), then comes its dtype",
)
# Words of Python, and what to write in Relay.
_PYTHON = {
    "return": "a block's last line is its value, without semicolon",
    **dict.fromkeys(["for", "while"], "what is repeated is a function that calls itself"),
    **dict.fromkeys(["import", "from"], "a file holds all that it uses"),
    "lambda": "a function is written fn (%x) { … }",
    "elif": "write else if (%c) { … } else { … }",
    **dict.fromkeys(["and", "or", "not"], "write logical_and(%a, %b), logical_or(%a, %b), logical_not(%a)"),
}
# Tokens that begin an argument, a parameter, a field.
_BEGINNINGS = frozenset(
    ["LOCAL", "GRAPH", "NUMBER", "NAME", "GLOBAL", "KEY", "META", "TRUE", "FALSE", "STRING", "TENSOR", "SCALAR", "FN"]
)
_WORDS = {
    "LPAR": "'('", "RPAR": "')'", "LBRACE": "'{'", "RBRACE": "'}'", "LSQB": "'['", "RSQB": "']'", "COMMA": "','",
    "SEMICOLON": "';'", "COLON": "':'", "EQUAL": "'='", "ARROW": "'->'", "FAT_ARROW": "'=>'", "INFIX": "an infix operator",
    "PROJECTION": "a field (.0)", "KEY": "an attribute (name=)", "STRING": "a string", "NUMBER": "a number",
    "GLOBAL": "a function's name (@f)", "NAME": "a name", "UNDERSCORE": "'_'", "DEF": "'def'", "TYPE": "'type'",
    "EXTERN": "'extern'", "NONE": "'None'", "TRUE": "'True'", "FALSE": "'False'", "ELSE": "'else'", END: "the end of the item",
}  # fmt: skip
# What may begin an expression, an attribute's value, a type: told in one word.
_GROUPS = (
    ("an expression", {"LOCAL", "GRAPH", "NUMBER", "GLOBAL", "NAME", "LPAR", "META", "TRUE", "FALSE", "IF", "FN", "MATCH", "REF", "BLOCK_PAREN"}),
    ("a value", {"NUMBER", "STRING", "TRUE", "FALSE", "NONE", "NAME", "LSQB", "LPAR", "LBRACE", "META", "SCALAR"}),
    ("a type", {"TENSOR", "SCALAR", "NAME", "LPAR", "FN", "REF", "UNDERSCORE"}),
    ("a binding", {"LET", "BIND_GRAPH"}),
    ("a pattern", {"UNDERSCORE", "LOCAL", "NAME", "LPAR"}),
)  # fmt: skip


@dataclass(frozen=True)
class Complaint:
    """A syntax error: the token it is reported at (after it, with `behind`), the message, and its notes.

    `before` is a token to which the note `expected ')' before this` belongs.
    """

    token: int
    behind: bool
    message: str
    notes: Sequence[str]
    before: tuple[int, str] | None = None


def explain(parser: Parser, position: int) -> Complaint:
    """Explains the error at the token at `position`, which does not fit the parser's state."""
    tokens = parser.tokens
    kind = tokens.kinds[position] if position < len(tokens.kinds) else END
    for place in range(max(position - 3, 0), min(position + 1, len(tokens.kinds))):
        if tokens.texts[place] in ("Tensor", "tensor"):
            return Complaint(place, False, *_split(_TENSOR))
        if did_you_mean(tokens.texts[place], ("Tensor",)) and tokens.texts[place + 1 : place + 2] == ["["]:
            return Complaint(place, False, f"unknown type '{tokens.texts[place]}'; did you mean 'Tensor'?", _TENSOR[1:])
    if position == 1 and kind == "GLOBAL" and tokens.kinds[0] == "NAME":
        known = f"'{tokens.texts[0]}' begins no function; did you mean 'def'?"
        return Complaint(0, False, known, ("a function is written def @main(…) { … }",))
    for place in (position - 1, position):
        word = tokens.texts[place] if 0 <= place < len(tokens.texts) else ""
        if word in _PYTHON:
            return Complaint(place, False, f"Relay has no '{word}'", (_PYTHON[word],))
    before = tokens.kinds[position - 1] if position else ""
    if kind == "LBRACE" and before == "RPAR":
        # `for (%i) { … }` reads as a call up to the brace.
        place = next(reversed(open_brackets(tokens.kinds, position - 1)), 0) - 1
        if place >= 0 and tokens.texts[place] in _PYTHON:
            word = tokens.texts[place]
            return Complaint(place, False, f"Relay has no '{word}'", (_PYTHON[word],))
    states = parser.settling()
    known = _known_errors(parser.table).get((states[-1], kind))
    if known is not None:
        return Complaint(position - (kind == "EQUAL"), False, *_split(known))
    expected = parser.table.expected(states[-1]) - {"ERROR"}
    bracket = _wrong_bracket(parser, position, kind)
    if bracket is not None:
        return bracket
    if kind == "COLON" and before in ("GRAPH", "LOCAL") and tokens.kinds[position + 1 : position + 2] == ["EQUAL"]:
        return Complaint(
            position, False, "unexpected ':='", (f"a binding is written {tokens.texts[position - 1]} = …;",)
        )
    if kind in ("TENSOR", "SCALAR") and before == "LOCAL" and any("COLON" in parser.table.expected(s) for s in states):
        return Complaint(
            position - 1, True, "a ':' is missing here", ("a type is written %x: Tensor[(2, 3), float32]",)
        )
    if position and expected <= {"SEMICOLON", "INFIX"}:
        return Complaint(position - 1, True, "a semicolon is missing here", ("each binding ends with ';'",))
    if position and kind in _BEGINNINGS and any("COMMA" in parser.table.expected(state) for state in states):
        return Complaint(position - 1, True, "a comma is missing here", ())
    found = "the end of the text" if kind == END else f"'{_short(tokens.texts[position])}'"
    notes = (f"an attribute is written {tokens.texts[position - 1]}=…",) if (before, kind) == ("NAME", "COLON") else ()
    return Complaint(position, False, f"expected {_wanted(expected)}, found {found}", notes)


_OUTSIDE = frozenset(["SEMICOLON", "LBRACE", "LET", "BIND_GRAPH", "DEF", "ELSE", "ARROW", END])
"""Tokens that are not inside of parentheses or square brackets."""


def _wrong_bracket(parser: Parser, position: int, kind: str) -> Complaint | None:
    """Explains a bracket that is never closed, or that closes none; None if the brackets match."""
    kinds, texts = parser.tokens.kinds, parser.tokens.texts
    stack = open_brackets(kinds, position)
    closer = CLOSERS[kinds[stack[-1]]] if stack else ""
    wanted = bool(stack) and parser.accepts(closer)
    closes = kind in BRACKETS and any(CLOSERS[kinds[bracket]] == kind for bracket in stack)
    if wanted and kind != closer and (kind == END or (closer != "RBRACE" and (closes or kind in _OUTSIDE))):
        message = f"this '{texts[stack[-1]]}' is never closed"
        return Complaint(stack[-1], False, message, (), (position, f"expected '{BRACKETS[closer]}' before this"))
    if kind in BRACKETS and not closes:
        what = "does not match the bracket that is open" if wanted else "closes nothing"
        return Complaint(position, False, f"this '{texts[position]}' {what}", ())
    return None


def _split(message: tuple[str, ...]) -> tuple[str, Sequence[str]]:
    return message[0], message[1:]


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"


def _wanted(expected: set[str]) -> str:
    """Returns the terminals in words; those that begin the same construct are listed once."""
    words: list[str] = []
    rest = set(expected)
    for word, members in _GROUPS:
        if members <= rest:
            words.append(word)
            rest -= members
    words += sorted({_WORDS.get(kind, f"'{kind.lower()}'") for kind in rest})
    if len(words) > 6:
        words = [*words[:6], "…"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


@cache
def _known_errors(table: ParsingTable) -> dict[tuple[int, str], tuple[str, ...]]:
    """(state, terminal) at the first error of each example → its message and notes."""
    found: dict[tuple[int, str], tuple[str, ...]] = {}
    for message, texts in EXAMPLES:
        for text in texts:
            error = first_error(table, tokenize(text))
            if error is None:
                raise ValueError(f"the example of an error is correct: {text}")
            parser, kind = error
            found.setdefault((parser.settling()[-1], kind), message)
    return found
