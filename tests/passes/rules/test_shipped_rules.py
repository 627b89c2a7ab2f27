"""Every rule that ships is true, and the rules of each file come to an end."""

from __future__ import annotations

from pathlib import Path

import pytest
from mirstack.dialects.rule import rewrites_of
from mirstack.parser import parse_mir
from mirstack.passes.rules.annex.check import check_rules, equal, integers
from mirstack.passes.rules.annex.check.equal import examples_of
from mirstack.passes.rules.engine.library import load_rules
from mirstack.support.deep_stack import in_deep_stack
from mirstack.support.diagnostics import Sources, render_all

ROOT = Path(__file__).parent.parent.parent.parent
EXAMPLES = Path(__file__).parent / "examples"
"""Programs for rules to which no generated one fits."""

FILES = sorted((ROOT / "passes").glob("**/*.mir"))


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_check_rules(file: Path, monkeypatch: pytest.MonkeyPatch):
    # What was found by then is enough for one run, and a slow machine finds as much.
    monkeypatch.setattr(equal, "SECONDS", 0.3)
    monkeypatch.setattr(equal, "MOST_RUNS", 4)
    monkeypatch.setattr(equal, "PATIENCE", 120.0)
    monkeypatch.setattr(integers, "TIMEOUT", 60_000)
    monkeypatch.setattr(integers, "WIDTHS", (8, 32))
    monkeypatch.setattr(integers, "PATIENCE", 100)
    example = EXAMPLES / file.name
    examples = in_deep_stack(lambda: examples_of(parse_mir(example.read_text()))) if example.exists() else []
    with Sources().reading() as sources:
        problems = check_rules(rewrites_of(load_rules(file)), examples)
        assert not problems, render_all(problems, sources)
