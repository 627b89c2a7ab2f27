"""Writes the prebuilt files beside grammars and rules: `python -m mirstack.driver.prebuild`.

    parser/relay/relay.lark          →  parser/relay/relay.json             the LALR table
    passes/relay/algebra/simplify_expr.mir   →  passes/relay/algebra/simplify_expr.json     where each rule is, and where it may begin

A file that is out of date costs time, and nothing else: it holds a digest of its source, and is recomputed where that differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..parser.lalr import prebuilt_table
from ..passes.rules.engine.shipped import prebuilt_index
from ..support.cache import prebuilt_text

ROOT = Path(__file__).parent.parent


def prebuilt(root: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """Yields the files to ship, with the contents of each."""
    for grammar in sorted((root / "parser").rglob("*.lark")):
        yield grammar.with_suffix(".json"), prebuilt_text(*prebuilt_table(grammar))
    for rules in sorted([*(root / "passes").rglob("*.mir"), *(root / "frontends").rglob("*.mir")]):
        yield rules.with_suffix(".json"), prebuilt_text(*prebuilt_index(rules))


def main() -> None:
    """Writes those that changed, and says which."""
    for path, text in prebuilt():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
