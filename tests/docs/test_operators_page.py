"""docs/operators.md is what the operator table says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from mirstack.dialects.relay.operator import all_operators

DOCS = Path(__file__).parents[2] / "docs"


def generator() -> ModuleType:
    """The script that writes the page, as a module."""
    spec = importlib.util.spec_from_file_location("generate_operators", DOCS / "generate_operators.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date():
    module = generator()
    if (DOCS / "operators.md").read_text(encoding="utf-8") != module.page(all_operators()):
        raise AssertionError(f"docs/operators.md is not what the table says: run `{module.COMMAND}`")


def test_every_operator_has_its_line():
    lines = (DOCS / "operators.md").read_text(encoding="utf-8").splitlines()
    for name in all_operators():
        assert sum(line.startswith(f"| `{name}(") for line in lines) == 1, name


def test_a_signature_shows_defaults():
    table = all_operators()
    assert table["nn.leaky_relu"].signature == "nn.leaky_relu(data, alpha=0.25)"
    assert table["concatenate"].signature == "concatenate(*data, axis=0)"
    assert table["clip"].signature == "clip(data, a_min=…, a_max=…)"
