"""docs/semantics.md shows the table that targets are held to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_up_to_date() -> None:
    program = "import generate_semantics as g; raise SystemExit(g.PAGE.read_text(encoding='utf-8') != g.page(g.PAGE.read_text(encoding='utf-8')))"
    done = subprocess.run([sys.executable, "-c", program], cwd=DOCS, check=False)
    assert done.returncode == 0, "docs/semantics.md is not what the table says: run `python docs/generate_semantics.py`"
