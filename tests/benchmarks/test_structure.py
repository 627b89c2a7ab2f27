"""The figures of `benchmarks.structure`: what must be none is none, the others only fall; and each counts what it says."""

from pathlib import Path

import pytest
from mirstack.benchmarks import structure
from mirstack.benchmarks.structure import Source

LIMITS = {
    "imports upward": 0,
    "circles at import": 0,
    "circles with imports in functions": 1,
    "files that patch xDSL outside of the room": 0,
    "files that use xDSL's private fields": 3,
    "public class names used twice in a top folder": 6,
    "names of ops that several dialects have": 12,
    "modules flat in passes/tir": 8,
    "lines": 210_500,
    "files over 800 lines": 0,
    "modules with one importer, in the same folder": 197,
}
"""The most that each figure may be. Lower a limit when the figure has fallen."""
AT_LEAST = {"shipped rules on TIR": 60}


@pytest.fixture(scope="module")
def source() -> Source:
    return Source()


def test_every_figure_has_a_limit() -> None:
    assert {*LIMITS, *AT_LEAST} == set(structure.FIGURES)


@pytest.mark.parametrize("name", LIMITS)
def test_no_figure_grows(name: str, source: Source) -> None:
    found = structure.FIGURES[name](source)
    assert found.count <= LIMITS[name], "\n".join(found.places)


@pytest.mark.parametrize("name", AT_LEAST)
def test_what_should_grow_does_not_shrink(name: str, source: Source) -> None:
    assert structure.FIGURES[name](source).count >= AT_LEAST[name]


def test_picture_of_the_architecture_is_current(source: Source) -> None:
    page = structure.PAGE.read_text(encoding="utf-8")
    drawn = structure.picture(source)
    assert page == structure.with_picture(page, drawn), "run `python -m benchmarks.structure --picture`"
    assert drawn in page


FILES = {
    "__init__.py": "",
    "universe.py": "",
    "support/__init__.py": "",
    "support/low.py": "def late():\n    from ..passes.tir import high\n",
    "support/patching.py": "from xdsl.ir import Block, Operation\n\nBlock.args = 1\nKINDS = (Operation,)\nfor kind in KINDS:\n    setattr(kind, 'x', 1)\n",
    "passes/__init__.py": "",
    "passes/tir/__init__.py": "",
    "passes/tir/high.py": "from ...support import low\n\n\nclass Plan:\n    pass\n",
    "passes/tir/other.py": "def first(op):\n    return op._operands\n\n\nclass Plan:\n    _own = 1\n\n    def get(self):\n        return self._own\n",
}


@pytest.fixture
def small(tmp_path: Path) -> Source:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return Source(tmp_path)


def test_each_figure_counts_what_it_says(small: Source) -> None:
    found = {name: each.places for name, each in structure.figures(small).items()}
    assert found["imports upward"] == ["support/low.py:2: passes.tir.high"]
    assert found["circles at import"] == []
    assert found["circles with imports in functions"] == ["passes.tir.high <-> support.low"]
    assert found["files that patch xDSL outside of the room"] == ["support/patching.py:3,5"]
    assert found["files that use xDSL's private fields"] == ["passes/tir/other.py: _operands"]
    assert found["public class names used twice in a top folder"] == [
        "passes: Plan x2: passes/tir/high.py, passes/tir/other.py"
    ]
    assert found["modules flat in passes/tir"] == ["passes/tir/high.py", "passes/tir/other.py"]
    assert found["lines"] == ["passes/tir: 14", "support: 8", "passes: 0"]
    assert found["modules with one importer, in the same folder"] == []


def test_picture_leaves_out_what_other_arrows_imply(tmp_path: Path) -> None:
    texts = {
        "__init__.py": "",
        "universe.py": "",
        "support/low.py": "",
        "dialects/tir/ops.py": "from ...support import low\n",
        "passes/tir/walk.py": "from ...support import low\nfrom ...dialects.tir import ops\n",
    }
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    arrows = [line.strip() for line in structure.picture(Source(tmp_path)).splitlines() if "-->" in line]
    assert arrows == ["dialects_tir --> support", "passes_tir --> dialects_tir"]
