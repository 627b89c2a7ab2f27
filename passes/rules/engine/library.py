"""Rule files."""

from __future__ import annotations

from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ....dialects.rule import RewriteOp, RulesetOp, rewrites_of
from ....support import extensions
from ....support.diagnostics import Sources, error_at
from ....support.source_text import source_text
from ....support.verify import verify


def load_rules(path: str | Path) -> ModuleOp:
    """Reads and verifies a file of rules, and of other items.

    Raises MirError if it cannot be read, or for what is wrong in it.
    """
    from ....parser import parse_mir

    try:
        text = source_text(Path(path).read_bytes())
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise error_at(None, f"the rule file {path} cannot be read: {reason}") from error
    Sources.current().add(str(path), text)
    module = parse_mir(text, str(path), directory=str(Path(path).parent))
    verify(module)
    return module


def select_rules(module: ModuleOp, name: str | None = None) -> list[RewriteOp]:
    """Returns the rules of a module, or of one of its sets.

    Raises MirError if there are none of that name.
    """
    found = rewrites_of(module, name.removeprefix("@") if name else None)
    if not found:
        raise error_at(None, "there are no rules to apply", "a rule is: rewrite @name { lhs => rhs where condition }")
    return found


def with_loaded(module: ModuleOp) -> ModuleOp:
    """Returns the rules of a module and of extensions; those of the module hide others of the name."""
    loaded = [each.value for each in extensions.loaded("rule.rewrite", "rule.set")]
    if not loaded:
        return module
    own = [op for op in module.ops if isinstance(op, RewriteOp | RulesetOp)]
    names = {op.sym_name.data for op in own}
    others = [op for op in loaded if isinstance(op, RewriteOp | RulesetOp) and op.sym_name.data not in names]
    return ModuleOp([_copy(op) for op in (*own, *others)])


def _copy(op: RewriteOp | RulesetOp) -> Operation:
    copy = op.clone()
    for inner, original in zip(copy.walk(), op.walk(), strict=True):
        inner.location = original.location
    return copy
