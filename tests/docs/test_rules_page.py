"""The table of functions in docs/rules.md is what the registry says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[2] / "docs"


def generator() -> ModuleType:
    """The script that writes the table, as a module."""
    spec = importlib.util.spec_from_file_location("generate_rule_functions", DOCS / "generate_rule_functions.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_up_to_date():
    text = (DOCS / "rules.md").read_text(encoding="utf-8")
    module = generator()
    if text != module.page(text):
        raise AssertionError(f"the functions in docs/rules.md are not those there are: run `{module.COMMAND}`")
