"""A pattern as text, for a person: `nn.relu(add(*, constant))`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.op import Op
from . import patterns as p

LONGEST = 400
"""Characters of a part; of a longer one the beginning. A part that stands in several places is written in each."""


def pattern_text(root: p.DFPattern) -> str:
    """The text of a pattern; nothing recurses, and nothing grows faster than the pattern."""
    texts: dict[p.DFPattern, str] = {}
    pending: list[tuple[p.DFPattern, bool]] = [(root, False)]
    while pending:
        pattern, ready = pending.pop()
        if ready:
            text = _text(pattern, texts.__getitem__)
            texts[pattern] = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
        elif pattern not in texts:
            pending.append((pattern, True))
            pending += [(part, False) for part in pattern.inputs()]
    return texts[root]


def _text(pattern: p.DFPattern, of: Callable[[p.DFPattern], str]) -> str:
    def several(parts: Sequence[p.DFPattern] | None) -> str:
        return "..." if parts is None else ", ".join(map(of, parts))

    match pattern:
        case p.WildcardPattern():
            return "*"
        case p.ConstantPattern():
            return "constant"
        case p.VarPattern():
            return f"%{pattern.name or '*'}"
        case p.ExprPattern():
            return pattern.expr.name if isinstance(pattern.expr, Op) else f"<{pattern.expr}>"
        case p.CallPattern():
            return f"{of(pattern.op)}({several(pattern.args)})"
        case p.FunctionPattern():
            return f"fn ({several(pattern.params)}) {{ {of(pattern.body)} }}"
        case p.IfPattern():
            branches = of(pattern.true_branch), of(pattern.false_branch)
            return f"if ({of(pattern.cond)}) {{ {branches[0]} }} else {{ {branches[1]} }}"
        case p.LetPattern():
            return f"let {of(pattern.var)} = {of(pattern.value)}; {of(pattern.body)}"
        case p.TuplePattern():
            return f"({several(pattern.fields)})"
        case p.TupleGetItemPattern():
            return f"{of(pattern.tuple)}.{'*' if pattern.index == -1 else pattern.index}"
        case p.AltPattern():
            return f"({of(pattern.left)} | {of(pattern.right)})"
        case p.AttrPattern():
            return f"{of(pattern.pattern)}{{{', '.join(f'{name}={value!r}' for name, value in pattern.attrs.items())}}}"
        case p.TypePattern():
            return f"({of(pattern.pattern)}: {pattern.type})"
        case p.DataTypePattern():
            return f"({of(pattern.pattern)}: {pattern.dtype})"
        case p.ShapePattern():
            return f"({of(pattern.pattern)}: [{', '.join(map(str, pattern.shape))}])"
        case p.DominatorPattern():
            return f"dominates({of(pattern.parent)}, {of(pattern.path)}, {of(pattern.child)})"
        case _:
            return type(pattern).__name__
