"""Syntax errors by example: common mistakes are recognised and answered with what to write."""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import cache

from xdsl.dialects.builtin import LocationAttr

from ...support.diagnostics import Diagnostic, MirError
from ..lalr import BRACKETS, CLOSERS, END, LexError, Parser, ParsingTable, Tokens, first_error, open_brackets
from .lexer import Language, Mistake, tokenize
from .literals import Refuse
from .tree import Binary, Token

_CONDITIONALS = (
    "@T.prim_func\ndef f(a):\n    A[i] = a if b else c\n",
    "@T.prim_func\ndef f(a):\n    A[i] = g(a if b else c)\n",
    "@T.prim_func\ndef f(a):\n    A[i] = (a if b else c)\n",
    "@T.prim_func\ndef f(a):\n    A[i] = a + b if b else c\n",
    "@T.prim_func\ndef f(a):\n    A[i] = (a + b if b else c)\n",
)
_MISTAKES: tuple[Mistake, ...] = (
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
            "@T.prim_func\ndef f(a):\nfor i in x:\n    pass\n",
            "@T.prim_func\ndef f(a):\nwith x:\n    pass\n",
            "@T.prim_func\ndef f(a):\nif x:\n    pass\n",
            "@T.prim_func\ndef f(a):\nwhile x:\n    pass\n",
            "@T.prim_func\ndef f(a):\nreturn x\n",
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
)  # fmt: skip


def refuse_comparison(comparison: Binary, defined: Container[str], refuse: Refuse) -> None:
    """Refuses the statement `x == value` where x is not defined: an assignment is meant."""
    name = comparison.left
    if isinstance(name, Token) and name.type == "NAME" and "." not in name and name not in defined:
        refuse(comparison, "'==' compares, it does not assign", f"write '=' to define '{name}'")


_LAYOUT = ("NEWLINE", "INDENT", "DEDENT", END)


def syntax_error(
    parser: Parser,
    tokens: Tokens,
    at: int,
    brackets: list[int],
    locate: Callable[[int], LocationAttr],
    text: str,
    language: Language,
) -> MirError:
    """Describes the syntax error at token `at`, where `parser` stopped, in the user's terms.

    `at` is one past the last token for the end of the text. `brackets` are the tokens of brackets that are never closed;
    `locate` returns the location of an offset.
    """
    kind = tokens.kinds[at] if at < len(tokens.kinds) else END
    found = tokens.texts[at] if at < len(tokens.kinds) else ""
    offset = _place(tokens, at, kind, text)
    opened = [b for b in brackets if b < at]
    if opened and (kind in (*_LAYOUT, "COLON") or "\n" in text[tokens.starts[opened[-1]] : offset]):
        start = tokens.starts[opened[-1]]
        closer = BRACKETS[CLOSERS[tokens.kinds[opened[-1]]]]
        diagnostic = Diagnostic(f"this '{text[start]}' is never closed", locate(start))
        return MirError(diagnostic.with_note(f"expected '{closer}' before this", locate(offset)))
    bracket = next(reversed(open_brackets(tokens.kinds, at)), None)
    if kind in BRACKETS and bracket is not None and CLOSERS[tokens.kinds[bracket]] != kind:
        start = tokens.starts[bracket]
        diagnostic = Diagnostic(f"this '{found}' does not match the bracket that is open", locate(offset))
        return MirError(diagnostic.with_note(f"'{text[start]}' is opened here", locate(start)))
    message, note = _explain(parser, kind, found, bracket, tokens, at, language)
    diagnostic = Diagnostic(message, locate(offset))
    return MirError(diagnostic.with_note(note) if note else diagnostic)


def _place(tokens: Tokens, at: int, kind: str, text: str) -> int:
    """Returns the offset of the caret: that of the token, or the code's end where a line or the text ends."""
    end = len(text.rstrip())
    if at > 0 and (kind == "NEWLINE" or at >= len(tokens.kinds) or tokens.starts[at] >= end):
        last = at - 1
        while last > 0 and tokens.kinds[last] in _LAYOUT:
            last -= 1
        return tokens.starts[last] + len(tokens.texts[last])
    return tokens.starts[at] if at < len(tokens.starts) else end


def _explain(
    parser: Parser, kind: str, found: str, bracket: int | None, tokens: Tokens, at: int, language: Language
) -> tuple[str, str]:
    if kind == "FOREIGN":
        return f"'{found}' has no place in {language.name}", language.foreign[found]
    accepted = {terminal for terminal in _SPOKEN if parser.accepts(terminal)}
    first = _first_of_line(tokens, at)
    before, word = (tokens.kinds[at - 1], tokens.texts[at - 1]) if at else ("", "")
    if kind == "LBRACE" and "COLON" in accepted and tokens.kinds[first] in _OPENERS:
        return "a ':' is missing before the body", "a body has no braces: it is indented under its line"
    if kind == "NEWLINE" and "COLON" in accepted and tokens.kinds[first] in _OPENERS:
        return "a ':' is missing before the body", "for, while, if, else, with, def and class lines end with ':'"
    if kind in ("ELSE", "ELIF") and first == at:
        return (
            "'else' or 'elif' without its 'if'",
            "it belongs directly under an if's body, at the column of the 'if'",
        )
    for message, note, states in _mistakes(language, parser.table):
        if (parser.states[-1], kind) in states:
            return message, note
    adjacent = at < len(tokens.starts) and at > 0 and tokens.starts[at - 1] + len(word) == tokens.starts[at]
    if before == "NUMBER" and kind == "NAME" and adjacent and word + found not in ("0x", "0b", "0o"):
        return f"the number {word} takes no suffix '{found}'", f"another dtype is stated as in {language.number}"
    if found in ("&", "|") and word == found and adjacent:
        return f"unexpected '{found}{found}'", "conditions are joined by and, or and not"
    if "OPERATOR" in accepted and kind in _STARTS and before in _ENDS:
        note = "values in a list are separated by ',', products are written with '*'"
        if first == at - 1 and before == "NAME" and "EQUAL" not in tokens.kinds[at : _end_of_line(tokens, at)]:
            note = f"a call is written {word}(…), an assignment {word} = …"
        return f"an operator or a comma is missing between '{word}' and '{found}'", note
    if kind == "IF" and before in _ENDS and "ELSE" in tokens.kinds[at : _end_of_line(tokens, at)]:
        return language.conditional
    if parser.accepts("ELSE") and not parser.accepts("COMMA"):
        return "this 'if' has no 'else'", "write what it is otherwise: a if condition else b"
    if kind in _OPENERS and before not in ("NEWLINE", "INDENT", "DEDENT", ""):
        return f"'{found}' begins a statement", "write it on a line of its own"
    if kind == "NEWLINE" and before == "COLON" and (called := tokens.texts[first]).startswith("T."):
        return f"'with' is missing before '{called}'", f"a body belongs to a statement: with {called}(…):"
    if "NAME" in accepted and "NUMBER" in accepted and kind not in _STARTS and kind not in _LAYOUT[1:]:
        what = f"before '{found}'" if found else f"after '{word}'" if at else "here"
        return f"an expression is missing {what}", _missing(before, word, kind)
    if kind in BRACKETS and not accepted & set(BRACKETS):
        return f"this '{found}' closes nothing", "remove it, or open the bracket before"
    opener = "" if bracket is None else tokens.kinds[bracket]
    if kind == "COLON" and before == "NAME" and opener == "LPAR" and word.isidentifier():
        return f"unexpected '{found}'", f"an argument by name is written {word}=…"
    what = (
        f"unexpected '{found}'"
        if found
        else "the line ends too early"
        if kind == "NEWLINE"
        else "unexpected end of the block"
    )
    if opener == "LBRACE" and "COLON" in accepted:
        return what, "braces hold a dictionary, {key: value}; a tuple is written (a, b)"
    spoken = _spoken(accepted)
    return what, f"expected {spoken}" if spoken else ""


def _missing(before: str, word: str, kind: str) -> str:
    """Returns the note for an expression that is missing after a token `word` of kind `before`."""
    if before == "OPERATOR":
        return f"'{word}' needs an expression on each side"
    if before == "PREFIX":
        return f"'{word}' needs an expression after it"
    if before in ("EQUAL", "AUGMENTED", "CHAINED"):
        return f"write the value after '{word}'"
    if before == "ELSE":
        return "write what it is otherwise: a if condition else b"
    if before == kind and kind in ("COMMA", "SEMICOLON"):
        return f"remove one '{word}'"
    return "an operator or a comma stands between two of them"


def _first_of_line(tokens: Tokens, at: int) -> int:
    """Returns the token that begins the line of token `at`."""
    at = min(at, len(tokens.kinds) - 1)
    while at > 0 and tokens.kinds[at - 1] not in ("NEWLINE", "INDENT", "DEDENT"):
        at -= 1
    return at


def _end_of_line(tokens: Tokens, at: int) -> int:
    """The first token from `at` on that ends a line."""
    while at < len(tokens.kinds) and tokens.kinds[at] not in _LAYOUT:
        at += 1
    return at


_OPENERS = frozenset(
    ["FOR", "WHILE", "IF", "ELIF", "ELSE", "WITH", "DEF", "INNER", "CLASS", "ASSERT", "RETURN", "PASS"]
)
# Tokens that an expression may begin and end with.
_STARTS = frozenset(["NAME", "NUMBER", "STRING", "LBRACE", "LAMBDA", "PREFIX", "STAR", "LPAR", "LSQB"])
_ENDS = frozenset(["NAME", "NUMBER", "STRING", "RPAR", "RSQB", "RBRACE", "MEMBER"])


@cache
def _mistakes(language: Language, table: ParsingTable) -> list[tuple[str, str, frozenset[tuple[int, str]]]]:
    """For each kind of mistake, where the parser stops at its examples: its state and the token's kind."""
    found: list[tuple[str, str, frozenset[tuple[int, str]]]] = []
    conditional = () if language.computes else ((*language.conditional, _CONDITIONALS),)
    for message, note, examples in (*_MISTAKES, *conditional, *language.mistakes):
        states: set[tuple[int, str]] = set()
        for example in examples:
            try:
                tokens, _ = tokenize(example, language)
            except LexError:
                continue
            error = first_error(table, tokens)
            if error is not None:
                states.add((error[0].states[-1], error[1]))
        found.append((message, note, frozenset(states)))
    return found


_SPOKEN = {
    "NAME": "a name", "NUMBER": "a number", "STRING": "a string", "OPERATOR": "an operator", "COMMA": "','", "RPAR": "')'",
    "RSQB": "']'", "RBRACE": "'}'", "LPAR": "'('", "COLON": "':'", "EQUAL": "'='", "NEWLINE": "the end of the line", "IN": "'in'",
    "DEF": "'def'", "CLASS": "'class'", "AT": "a decorator", "INDENT": "an indented body", "AS": "'as'",
}  # fmt: skip


def _spoken(accepted: set[str]) -> str:
    names = [spoken for terminal, spoken in _SPOKEN.items() if terminal in accepted]
    if "OPERATOR" in accepted:
        # After an expression anything that goes on with it may follow; only the brackets' and separators' ends help.
        names = [n for n in names if n not in ("'('", "a string", "':'", "'='", "'in'", "'as'")]
    elif {"a name", "a number"} <= set(names):
        names = ["an expression"] + [n for n in names if n not in ("a name", "a number", "a string", "'('")]
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
