"""The pass registry: each entry is what it says, and is found by its name in the sources and among the tests."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import pytest
from mirstack.passes.registry import PASSES, XDSL_PASSES, Entry, list_passes, pass_factories, pass_options
from mirstack.universe import DIALECTS, UNIVERSE, dialect_factories
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms import get_all_passes

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("entry", PASSES, ids=[entry.name for entry in PASSES])
def test_entry(entry: Entry):
    pass_class = entry.load()
    assert issubclass(pass_class, ModulePass)
    assert pass_class.name == entry.name
    assert pass_class.__doc__ and not pass_class.__doc__.startswith(f"{pass_class.__name__}("), "a docstring of its own"
    assert dataclasses.is_dataclass(pass_class)
    assert pass_class.__dataclass_params__.frozen  # pyright: ignore
    assert entry.doc and not entry.doc.endswith(".")


@pytest.mark.parametrize("entry", PASSES, ids=[entry.name for entry in PASSES])
def test_found_by_its_name(entry: Entry):
    assert (ROOT / f"{entry.module.replace('.', '/')}.{'mir' if entry.is_rules else 'py'}").is_file()
    named = entry.name.replace("-", "_")
    tests = [path for suffix in (".mir", ".mlir", ".test") for path in ROOT.glob(f"filecheck/**/{named}{suffix}")]
    assert tests, f"no test filecheck/{entry.where.replace('.', '/')}/{named}.mir"


def test_names_are_unique():
    assert len({entry.name for entry in PASSES}) == len(PASSES)


def test_own_passes_before_xdsl():
    assert pass_factories()["cse"]().__module__ == "mirstack.passes.common.cse"
    assert XDSL_PASSES.keys() <= get_all_passes().keys()
    assert not XDSL_PASSES.keys() & {entry.name for entry in PASSES}


def test_universe_takes_no_name_of_xdsl():
    assert not UNIVERSE.all_passes.keys() & get_all_passes().keys()
    assert UNIVERSE.all_passes["mirstack-cse"]().name == "mirstack-cse"


@pytest.mark.parametrize("name", DIALECTS)
def test_dialects(name: str):
    dialect = dialect_factories()[name]()
    context = Context()
    context.load_dialect(dialect)


@dataclass(frozen=True)
class WithOptions(ModulePass):
    """A pass for the test."""

    name = "with-options"
    needed: int
    tile_sizes: tuple[int, ...] = (4, 8)
    cpu: str = ""
    fast: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Does nothing."""


def test_options():
    assert list(map(str, pass_options(WithOptions))) == [
        "needed: int",
        "tile-sizes: tuple[int, ...] = (4, 8)",
        'cpu: str = ""',
        "fast: bool = true",
    ]


def test_list():
    text = "\n".join(list_passes())
    for entry in PASSES:
        assert f"  {entry.name} " in text and entry.doc in text
    assert "opt-level: int = 2" in text
    assert "canonicalize" in text


def test_passes_of_rules_are_in_the_namespace_of_their_level():
    from mirstack import relay, tir

    assert "RenormalizeSplitPattern" in dir(tir.transform)
    assert "FastMath" in dir(relay.transform)
