"""Draws sets of rewrite rules, some wrong: `--check-rules` must name exactly the wrong ones.

```text
rewrite @r0 { floor(floor(%x)) => floor(%x) }                  right
rewrite @r1 { abs(negative(%x)) => negative(abs(%x)) where … } wrong: named, with a program and inputs
```

Right rules are identities of a table, wrong ones slight changes of these, both inside of other operators and on subprograms in the
place of variables. A wrong one counts only where evaluating both sides shows a difference.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

import numpy as np

from ...dialects.relay.operator import all_operators
from ...parser import parse_mir
from ...passes.rules.annex.check import check_rules
from ...passes.rules.engine.library import select_rules
from ...support.diagnostics import MirError
from ..case import Case, Verdict, reason
from ..reduce import ON_TEXT

RIGHT = (
    ("negative(negative(%x))", "%x"),
    ("abs(abs(%x))", "abs(%x)"),
    ("abs(negative(%x))", "abs(%x)"),
    ("floor(floor(%x))", "floor(%x)"),
    ("ceil(ceil(%x))", "ceil(%x)"),
    ("trunc(trunc(%x))", "trunc(%x)"),
    ("round(round(%x))", "round(%x)"),
    ("ceil(floor(%x))", "floor(%x)"),
    ("floor(trunc(%x))", "trunc(%x)"),
    ("nn.relu(nn.relu(%x))", "nn.relu(%x)"),
    ("maximum(%x, %x)", "%x"),
    ("minimum(%x, %x)", "%x"),
    ("sign(sign(%x))", "sign(%x)"),
    ("copy(%x)", "%x"),
    ("negative(floor(%x))", "ceil(negative(%x))"),
    ("negative(ceil(%x))", "floor(negative(%x))"),
    ("abs(sign(negative(%x)))", "abs(sign(%x))"),
    ("maximum(%x, maximum(%x, %x))", "%x"),
    ("nn.relu(abs(%x))", "abs(%x)"),
)
"""What is equal on all numbers, and not longer on the right side."""

WRONG = (
    ("abs(negative(%x))", "negative(abs(%x))"),
    ("negative(negative(%x))", "negative(%x)"),
    ("floor(ceil(%x))", "floor(%x)"),
    ("ceil(floor(%x))", "ceil(%x)"),
    ("negative(floor(%x))", "floor(negative(%x))"),
    ("nn.relu(negative(%x))", "negative(nn.relu(%x))"),
    ("subtract(%x, negative(%x))", "subtract(%x, %x)"),
    ("round(floor(%x))", "round(%x)"),
    ("abs(nn.relu(%x))", "abs(%x)"),
    ("trunc(negative(%x))", "floor(negative(%x))"),
    ("sign(abs(%x))", "sign(%x)"),
    ("minimum(%x, abs(%x))", "abs(%x)"),
    ("maximum(negative(%x), %x)", "%x"),
    ("tanh(negative(%x))", "tanh(%x)"),
    ("exp(log(%x))", "%x"),
    ("log(exp(%x))", "%x"),
    ("sqrt(multiply(%x, %x))", "%x"),
    ("multiply(sqrt(%x), sqrt(%x))", "%x"),
    ("divide(%x, %x)", "ones_like(%x)"),
    ("subtract(%x, %x)", "zeros_like(%x)"),
    ("round(%x)", "floor(add(%x, 0.5))"),
    ("maximum(%x, negative(%x))", "%x"),
    ("rsqrt(%x)", "sqrt(%x)"),
    ("sigmoid(negative(%x))", "negative(sigmoid(%x))"),
    ("cos(negative(%x))", "negative(cos(%x))"),
    ("erf(negative(%x))", "erf(%x)"),
)
"""What is not equal on some numbers: most of them, or negative, huge, infinite ones and NaN."""

AROUND = (
    "{}",
    "{}",
    "exp({})",
    "add({}, %y)",
    "multiply({}, {})",
    "negative({})",
    "tanh({})",
    "nn.relu({})",
    "sigmoid({})",
)
WITHIN = ("%x", "%x", "%x", "exp(%x)", "negative(%x)", "add(%x, %z)", "tanh(%x)", "multiply(%x, %z)", "cos(%x)")


@dataclass(frozen=True)
class Rule:
    """A rule that is "right", "wrong" on plain numbers, or wrong at the "edge": on special ones only."""

    left: str
    right: str
    truth: str

    def text(self, name: str) -> str:
        """Returns the rule's text, on floats."""
        return f"rewrite @{name} {{ {self.left} => {self.right} where is_float(%x) }}"


def draw_rule(rng: random.Random, wrong: bool) -> Rule:
    """Returns a rule of one of the tables in other surroundings."""
    for _ in range(50):
        left, right = rng.choice(WRONG if wrong else RIGHT)
        inner, outer = rng.choice(WITHIN), rng.choice(AROUND)
        left, right = (outer.format(*[side.replace("%x", inner)] * 2) for side in (left, right))
        truth = truth_of(left, right)
        if (truth == "right") != wrong:
            return Rule(left, right, truth)
    return Rule("abs(negative(%x))", "negative(abs(%x))", "wrong") if wrong else Rule("copy(%x)", "%x", "right")


PLAIN = np.array([-7.5, -3.0, -2.5, -1.25, -0.5, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 6.0, 9.75])
EDGES = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, 1e38, -1e38, 3e4, 0.49999997, 8388609.0])


def truth_of(left: str, right: str) -> str:
    """Evaluates both sides: "wrong" if plain numbers differ clearly, "edge" if only others do, or "right"."""
    a, b = (evaluate(side, PLAIN) for side in (left, right))
    with np.errstate(all="ignore"):
        apart = np.abs(a - b) > 1e-3 * (1 + np.abs(b))
    if apart.any() or (np.isnan(a) != np.isnan(b)).any():
        return "wrong"
    a, b = (evaluate(side, EDGES) for side in (left, right))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return (
        "right" if same.all() and np.array_equal(np.signbit(a[~np.isnan(a)]), np.signbit(b[~np.isnan(b)])) else "edge"
    )


_TOKEN = re.compile(r"%\w+|[\w.]+|[(),]")


def evaluate(text: str, x: np.ndarray) -> np.ndarray:
    """Returns an expression of operators in float32; `%y` and `%z` are numbers of other size."""
    tokens = _TOKEN.findall(text)
    wide = x.astype(np.float32)
    values = {"%x": wide, "%y": np.roll(wide, 1) * np.float32(0.5), "%z": np.roll(wide, 2)}

    def term() -> np.ndarray:
        token = tokens.pop(0)
        if token in values:
            return values[token]
        if token[0].isdigit():
            return np.array(token.rstrip("f"), np.float32)
        assert tokens.pop(0) == "("
        arguments = [term()]
        while tokens.pop(0) == ",":
            arguments.append(term())
        operator = all_operators()[token]
        return np.asarray(operator.numpy(operator.attrs({}), *arguments))

    with np.errstate(all="ignore"):
        return term()


class RulesFuzzer:
    """Draws sets of one to four rules; each set is checked at once."""

    shrinkers = ON_TEXT[:1]

    def draw(self, seed: int, number: int) -> Case:
        """Draws the case of a number."""
        rng = random.Random(f"rules/{seed}/{number}")
        rules = [draw_rule(rng, rng.random() < 0.5) for _ in range(rng.randint(1, 4))]
        truths = {f"r{n}": rule.truth for n, rule in enumerate(rules)}
        text = "".join(rule.text(f"r{n}") + "\n" for n, rule in enumerate(rules))
        return Case("rules", text, {}, {"truths": truths}, frozenset(truths.values()))

    def check(self, case: Case) -> Verdict:
        """Checks the rules, and compares who is accused with who is wrong."""
        verdict = Verdict()
        try:
            rules = select_rules(parse_mir(case.text))
        except MirError as error:
            verdict.refused = reason(error, "parser")
            return verdict
        problems = [problem.message for problem in check_rules(rules)]
        accused = {
            name
            for message in problems
            for name in re.findall(r"@(\w+)", message)
            if "meaning" in message or "type of a value" in message
        }
        verdict.compared += 1
        for rule in rules:
            name = rule.sym_name.data
            truth = case.options["truths"][name]
            verdict.counts[f"{truth} rules"] += 1
            if truth != "right":
                verdict.counts[f"{truth} rules found"] += name in accused
            if truth == "wrong" and name not in accused:
                verdict.fail("blessed", "", f"rule @{name} is wrong, and not said to be")
            if truth == "edge" and name not in accused:
                verdict.fail("blessed", "edge", f"rule @{name} is wrong for special numbers, and not said to be")
            if truth == "right" and name in accused:
                said = next(message for message in problems if f"@{name}" in message)
                verdict.fail("accused", "", f"rule @{name} is right, but: {said}")
        return verdict


FUZZER = RulesFuzzer()
