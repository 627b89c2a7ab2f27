"""LALR(1) parsing with lark's tables and a driver of our own.

lark analyses the grammar file. The tables of the grammars that ship with the package are stored next to them, others in the
cache folder, so that a start neither imports lark nor analyses anything. The driver reads the token list of a lexer, calls one
function per reduced rule, and lets its owner repair the stacks after an error, so that one run reports every error of a text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, cast

from ..support.cache import read_json, read_prebuilt, write_json

END = "$END"
# Changes with what `_analyse` returns.
_FORMAT = b"lalr table 1"


@dataclass(slots=True)
class Tokens:
    """The tokens of a text: their kinds (terminals of the grammar), texts, and offsets."""

    kinds: list[str] = field(default_factory=list[str])
    texts: list[str] = field(default_factory=list[str])
    starts: list[int] = field(default_factory=list[int])


class LexError(Exception):
    """Text in which no token begins, at `position`."""

    def __init__(self, position: int, message: str, *notes: str):
        super().__init__(message)
        self.position, self.message, self.notes = position, message, notes


@dataclass(frozen=True)
class Rule:
    """`origin: …` of `size` symbols; `name` is its alias, or its origin's name."""

    name: str
    origin: str
    size: int


@dataclass(frozen=True, eq=False)
class ParsingTable:
    """An LALR(1) automaton.

    In state s, `actions[s]` maps a terminal to the next state (> 0) or to ~rule; `gotos[s]` maps a rule's origin to the next state.
    """

    start: int
    end: int
    rules: Sequence[Rule]
    actions: Sequence[dict[str, int]]
    gotos: Sequence[dict[str, int]]

    def expected(self, state: int) -> set[str]:
        """The terminals that may follow in a state."""
        return set(self.actions[state])


@lru_cache
def load_table(grammar: Path) -> ParsingTable:
    """Loads the table of a `.lark` file whose start rule is `start`.

    It is read from the file next to the grammar or from the cache folder; otherwise lark computes it.
    """
    text = grammar.read_bytes()
    digest = _digest(text)
    name = f"{grammar.stem}-{digest}.json"
    for read in (lambda: read_prebuilt(grammar, digest), lambda: read_json(name)):
        stored = read()
        if stored is not None:
            try:
                return _from_json(stored)
            except (KeyError, TypeError, ValueError, IndexError):
                pass  # The file is damaged: it is made again.
    stored = _analyse(text.decode())
    write_json(name, stored)
    return _from_json(stored)


def prebuilt_table(grammar: Path) -> tuple[str, dict[str, Any]]:
    """Returns the digest and the table that are shipped next to a grammar."""
    text = grammar.read_bytes()
    return _digest(text), _analyse(text.decode())


def _digest(grammar: bytes) -> str:
    return hashlib.blake2b(grammar, digest_size=12, person=_FORMAT).hexdigest()


def _analyse(grammar: str) -> dict[str, Any]:
    """The grammar's table as plain data."""
    from lark import Lark
    from lark.grammar import Rule as LarkRule
    from lark.lexer import Lexer, TerminalDef

    class NoLexer(Lexer):
        def __init__(self, conf: object):
            """The tokens come from elsewhere."""

        def lex(self, lexer_state: object, parser_state: object):  # type: ignore[override]
            return iter(())

    lark = Lark(grammar, parser="lalr", lexer=NoLexer, maybe_placeholders=False)
    serialize = cast("Callable[[list[type]], tuple[Any, Any]]", lark.memo_serialize)  # pyright: ignore[reportUnknownMemberType]
    data, memo = serialize([TerminalDef, LarkRule])
    table = data["parser"]["parser"]
    names = table["tokens"]
    # lark meets rules and states in no particular order; ours depends on the grammar alone.
    entries = [(number, entry) for number, entry in memo.items() if "origin" in entry]
    entries.sort(key=lambda item: (item[1]["origin"]["name"], [symbol["name"] for symbol in item[1]["expansion"]]))
    numbers = {number: place for place, (number, _) in enumerate(entries)}
    rules = [
        (entry["alias"] or entry["origin"]["name"], entry["origin"]["name"], len(entry["expansion"]))
        for _, entry in entries
    ]
    rows = {
        state: sorted((names[symbol], kind, target) for symbol, (kind, target) in row.items())
        for state, row in table["states"].items()
    }
    # From 0, which is the start: no token leads there, so that 0 can say that one does not fit.
    order: dict[Any, int] = {table["start_states"]["start"]: 0}
    queue = list(order)
    for state in queue:
        for _, kind, target in rows[state]:
            if kind == 0 and target not in order:
                order[target] = len(order)
                queue.append(target)
    actions: list[dict[str, int]] = []
    gotos: list[dict[str, int]] = []
    for state in queue:
        actions.append({})
        gotos.append({})
        for name, kind, target in rows[state]:
            if kind == 0:
                # Terminals are written in capitals.
                (actions if name.isupper() else gotos)[-1][name] = order[target]
            else:
                actions[-1][name] = ~numbers[target["@"]]
    return {
        "start": 0,
        "end": order[table["end_states"]["start"]],
        "rules": rules,
        "actions": actions,
        "gotos": gotos,
    }


def _from_json(data: dict[str, Any]) -> ParsingTable:
    rules = [Rule(str(name), str(origin), int(size)) for name, origin, size in data["rules"]]
    actions: list[dict[str, int]] = data["actions"]
    gotos: list[dict[str, int]] = data["gotos"]
    if len(actions) != len(gotos) or data["start"] != 0 or not 0 < data["end"] < len(actions):
        raise ValueError("the table is inconsistent")
    # One object per name, so that the driver's look-ups compare by identity.
    shared: dict[str, str] = {}
    for rows in (actions, gotos):
        for place, row in enumerate(rows):
            rows[place] = {shared.setdefault(name, name): int(target) for name, target in row.items()}
            if any(not -len(rules) <= target < len(actions) for target in row.values()):
                raise ValueError("the table is inconsistent")
    return ParsingTable(int(data["start"]), int(data["end"]), rules, actions, gotos)


Reducer: TypeAlias = "Callable[..., object]"
"""Takes a rule's values, one for each symbol: a token's index for a terminal, a reducer's result for a rule."""

Step: TypeAlias = "tuple[Reducer | None, int, Mapping[int, int]]"
"""How a rule is reduced: what makes its value (None passes the only one on), its size, and the next state by the one before."""


def reducers(table: ParsingTable, handler: object) -> list[Step]:
    """Returns how each rule is reduced: by the handler's method `on_NAME`.

    A rule of one symbol needs no method: it passes its value on. The last rule comes first, so that a table's action -1 finds rule 0.
    """
    by_origin = _gotos_by_origin(table)
    found: list[Step] = []
    for rule in table.rules:
        method = getattr(handler, f"on_{rule.name}", None)
        if method is None and rule.size != 1:
            raise TypeError(f"{type(handler).__name__} has no method on_{rule.name}")
        found.append((method, rule.size, by_origin.get(rule.origin, {})))
    return found[::-1]


@lru_cache
def _gotos_by_origin(table: ParsingTable) -> dict[str, dict[int, int]]:
    """For each origin of rules the next state by the one before."""
    by_origin: dict[str, dict[int, int]] = {}
    for state, row in enumerate(table.gotos):
        for origin, target in row.items():
            by_origin.setdefault(origin, {})[state] = target
    return by_origin


class Parser:
    """Runs an automaton over one token list.

    After an error the owner may change the stacks and go on from another token.
    """

    def __init__(self, table: ParsingTable, tokens: Tokens, steps: Sequence[Step]):
        self.table = table
        self.tokens = tokens
        self.steps = steps
        self.states = [table.start]
        self.values: list[object] = []

    def run(self, first: int = 0) -> int | None:
        """Feeds the tokens from `first` on; `finish` follows.

        Returns the index of the first token that does not fit, or None.
        """
        # The inner loop of all reading: everything is a local variable.
        kinds, steps, actions = self.tokens.kinds, self.steps, self.table.actions
        states, values = self.states, self.values
        state = states[-1]
        for index in range(first, len(kinds)):
            kind = kinds[index]
            action = actions[state].get(kind, 0)
            while action < 0:
                method, size, goto = steps[action]
                if size == 1:
                    if method is not None:
                        values[-1] = method(values[-1])
                    states[-1] = state = goto[states[-2]]
                elif size:
                    values[-size:] = [method(*values[-size:])]  # type: ignore[misc]
                    state = goto[states[-size - 1]]
                    states[-size:] = [state]
                else:
                    values.append(method())  # type: ignore[misc]
                    state = goto[state]
                    states.append(state)
                action = actions[state].get(kind, 0)
            if not action:
                return index
            states.append(action)
            values.append(index)
            state = action
        return None

    def feed(self, kind: str, value: object) -> bool:
        """Shifts one token that the text does not have. False when it does not fit; reductions stay done."""
        action = self._reduce(kind)
        if action > 0:
            self.states.append(action)
            self.values.append(value)
        return action > 0

    def finish(self) -> bool:
        """Feeds the end of the text. False when the text ended too early."""
        self._reduce(END)
        return self.states[-1] == self.table.end

    def _reduce(self, kind: str) -> int:
        """All reductions before a token; the state that it leads to, or 0 when it does not fit."""
        states, values = self.states, self.values
        while states[-1] != self.table.end:
            action = self.table.actions[states[-1]].get(kind, 0)
            if action >= 0:
                return action
            method, size, goto = self.steps[action]
            start = len(values) - size
            arguments = values[start:]
            values[start:] = [arguments[0] if method is None else method(*arguments)]
            states[start + 1 :] = [goto[states[start]]]
        return 0

    def settling(self) -> list[int]:
        """Returns the states reached by reductions that are possible whatever follows, the present one first.

        The last tells best which tokens are expected. The stacks stay as they are.
        """
        table, states = self.table, list(self.states)
        passed = [states[-1]]
        while True:
            rule = next((table.rules[~a] for a in table.actions[states[-1]].values() if a < 0), None)
            if rule is None or states[-1] == table.end or len(states) <= rule.size:
                return passed
            if rule.size:
                del states[-rule.size :]
            elif len(table.actions[states[-1]]) > 1:
                # An empty rule says nothing yet, unless nothing else can follow.
                return passed
            states.append(table.gotos[states[-1]][rule.origin])
            passed.append(states[-1])

    def accepts(self, kind: str) -> bool:
        """Returns whether a token of this kind may come next. The stacks stay as they are."""
        table, states = self.table, list(self.states)
        while True:
            action = table.actions[states[-1]].get(kind)
            if action is None or action >= 0:
                return action is not None
            rule = table.rules[~action]
            if rule.size:
                del states[-rule.size :]
            states.append(table.gotos[states[-1]][rule.origin])
            if kind == END and states[-1] == table.end:
                return True

    @property
    def result(self) -> object:
        """The start rule's value, after `finish`."""
        return self.values[-1]


CLOSERS = {"LPAR": "RPAR", "BLOCK_PAREN": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE"}
"""The terminal that closes each bracket, in every grammar."""
BRACKETS = {"RPAR": ")", "RSQB": "]", "RBRACE": "}"}


def open_brackets(kinds: Sequence[str], end: int) -> list[int]:
    """Returns the tokens of the brackets that are open before token `end`, the innermost last."""
    stack: list[int] = []
    for index in range(end):
        if kinds[index] in CLOSERS:
            stack.append(index)
        elif kinds[index] in BRACKETS and stack:
            stack.pop()
    return stack


class _Nothing:
    """Builds nothing: each rule's method returns None."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


def first_error(table: ParsingTable, tokens: Tokens) -> tuple[Parser, str] | None:
    """Returns the parser at the first token that does not fit, and that token's kind; None if all fit.

    Nothing is built. Mistakes are recognised by comparing an error's state and token with those of examples.
    """
    parser = Parser(table, tokens, reducers(table, _Nothing()))
    at = parser.run()
    if at is not None:
        return parser, tokens.kinds[at]
    return None if parser.finish() else (parser, END)
