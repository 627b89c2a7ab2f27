"""docs/from-tvm.md lists the names of TVM that are there, and each that is not wanted says what to use instead."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import mirstack
import pytest
from mirstack.api.no_attribute import not_wanted

DOCS = Path(__file__).parents[2] / "docs"


def _generator() -> Any:
    spec = importlib.util.spec_from_file_location("generate_from_tvm", DOCS / "generate_from_tvm.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_current() -> None:
    # In a process of its own, in which no test has imported what names are then found in.
    program = "import generate_from_tvm as g; text = g.PAGE.read_text(encoding='utf-8'); raise SystemExit(g.page(text) != text)"
    done = subprocess.run([sys.executable, "-c", program], cwd=DOCS, check=False)
    assert done.returncode == 0, "docs/from-tvm.md is not what there is: run `python docs/generate_from_tvm.py`"


def test_names_that_are_not_wanted_say_what_to_use_instead() -> None:
    generator = _generator()
    for group in not_wanted():
        known = generator.members(group.module)
        assert not known.intersection(group.names), "they are there by now"
    with pytest.raises(AttributeError) as caught:
        _ = mirstack.autotvm  # type: ignore[attr-defined]
    assert str(caught.value) == (
        "module 'mirstack' has no 'autotvm', which TVM has: schedules come from rules and from `tir.Schedule` (docs/schedules.md)"
    )
    with pytest.raises(
        AttributeError, match=r"^module 'mirstack.arith' has no attribute 'Analyser'; did you mean 'Analyzer'\?$"
    ):
        _ = mirstack.arith.Analyser  # type: ignore[attr-defined]
