"""Times the application of rules: 200 should cost little more than 10, also with one root op.

Graphs of 100,000 ops must take a time linear in their size.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise

from mirstack.dialects.relay.infer import infer_types
from mirstack.dialects.rule import rewrites_of
from mirstack.parser import parse_mir
from mirstack.passes.rules.engine.rewriter import RuleIndex, apply_rules
from mirstack.support.deep_stack import in_deep_stack
from xdsl.dialects.builtin import ModuleOp

UNARY = (
    "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "negative", "abs", "sin", "cos", "tan", "sinh", "cosh", "floor",
    "ceil", "round", "trunc", "sign", "erf", "atan",
)  # fmt: skip
BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "floor_divide", "mod", "floor_mod")
SIZES = (25_000, 50_000, 100_000)


def different_roots(count: int) -> str:
    """Returns rules on pairs of operators, with as many root ops as there are."""
    pairs = [(outer, inner) for inner in BINARY for outer in UNARY][:count]
    return "\n".join(f"rewrite @{o}_{i} {{ {o}({i}(%x, %x)) => {o}(%x) }}" for o, i in pairs)


def one_root(count: int) -> str:
    """Returns rules that all begin with `add`."""
    pairs = [(a, b) for a in UNARY for b in BINARY][:count]
    return "\n".join(f"rewrite @add_{a}_{b} {{ add({a}(%x), {b}(%x, %x)) => {a}(%x) }}" for a, b in pairs)


def index(text: str) -> RuleIndex:
    """Returns the compiled rules of a text."""
    return RuleIndex.of(rewrites_of(parse_mir(text)))


def graph(count: int) -> ModuleOp:
    """Returns a chain of `count` ops of 12 kinds, on which no rule above applies."""
    lines = ["  %0 = add(%x, %y);"]
    for k in range(1, count):
        name = (*UNARY[:8], *BINARY[:4])[k % 12]
        lines.append(f"  %{k} = {name}(%{k - 1}{', %y' if name in BINARY else ''});")
    body = "\n".join(lines)
    module = parse_mir(
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) {\n'
        f"{body}\n  %{count - 1}\n}}\n"
    )
    infer_types(module)
    return module


HITS = index("rewrite @fold { add(%x, 0) => %x } rewrite @twice { multiply(add(%a, 0), %b) => multiply(%a, %b) }")


def rewritten(count: int) -> ModuleOp:
    """Returns a chain of which every second op is rewritten away."""
    lines = ["  %0 = exp(%x);"]
    lines += [f"  %{k} = {f'add(%{k - 1}, 0f)' if k % 2 else f'exp(%{k - 1})'};" for k in range(1, count)]
    body = "\n".join(lines)
    module = parse_mir(f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) {{\n{body}\n  %{count - 1}\n}}\n')
    infer_types(module)
    return module


def seconds(module: ModuleOp, rules: RuleIndex, rounds: int = 3) -> float:
    """Returns the CPU seconds of applying rules; the least of some rounds where nothing changes."""
    times: list[float] = []
    for _ in range(rounds):
        start = time.process_time()
        for op in list(module.ops):
            apply_rules(op, rules)
        times.append(time.process_time() - start)
    return min(times)


def by_rule_count(size: int, counts: Sequence[int] = (10, 200)) -> dict[str, list[float]]:
    """Seconds with few and many rules, with different roots and one."""
    module = graph(size)
    texts = {"roots of 20 kinds": different_roots, "one root": one_root}
    return {name: [seconds(module, index(text(count))) for count in counts] for name, text in texts.items()}


def by_size(sizes: Sequence[int] = SIZES) -> dict[str, list[float]]:
    """Seconds by size, of a graph on which nothing applies and of one of which half is rewritten."""
    rules = index(one_root(200) + "\n" + different_roots(200))
    return {
        "nothing applies": [seconds(graph(size), rules) for size in sizes],
        "half is rewritten": [seconds(rewritten(size), HITS, rounds=1) for size in sizes],
    }


def main() -> None:
    """Prints seconds and ratios."""
    for name, (few, many) in in_deep_stack(lambda: by_rule_count(SIZES[0])).items():
        print(f"  {name + ', 25,000 ops':<34}10 rules {few:.3f} s  200 rules {many:.3f} s  {many / few:.2f} x")
    for name, times in in_deep_stack(lambda: by_size()).items():
        ratios = " ".join(f"{b / a:.2f} x" for a, b in pairwise(times))
        print(f"  {name:<34}" + " ".join(f"{t:.3f} s" for t in times) + f"  doubling {ratios}")


if __name__ == "__main__":
    main()
