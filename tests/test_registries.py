"""Names of modules, classes and files that stand in tables as strings, each looked up."""

import importlib
from pathlib import Path

import mirstack
import pytest
from mirstack import universe
from mirstack.dialects.relay.operators import GRADIENTS, LAYOUT_RULES, TOPICS
from mirstack.dialects.te import schedule_interface
from mirstack.lowering.driver.cache import keys
from mirstack.lowering.driver.preload import PRELOADED
from mirstack.passes import registry
from mirstack.passes.rules.engine import shipped
from mirstack.passes.schedule.engine import primitive

ROOT = Path(mirstack.__file__).parent
TOP_FOLDERS = ("api", "dialects", "driver", "editor", "frontends", "fuzz", "lowering", "parser", "passes", "support")
PACKAGES = (
    "mirstack",
    "mirstack.api.ir",
    "mirstack.api.tir",
    "mirstack.dialects.arith",
    "mirstack.api.relay",
    "mirstack.api.script",
)


@pytest.mark.parametrize("entry", registry.PASSES, ids=lambda entry: entry.name)
def test_each_registered_pass_is_a_class_of_that_name(entry: registry.Entry) -> None:
    assert entry.load().name == entry.name


@pytest.mark.parametrize("topic", TOPICS + GRADIENTS + LAYOUT_RULES)
def test_each_topic_of_operators_is_a_module(topic: str) -> None:
    importlib.import_module(f"mirstack.dialects.relay.operators.{topic}")


@pytest.mark.parametrize("name", PRELOADED)
def test_each_preloaded_module_is_one(name: str) -> None:
    importlib.import_module(f"mirstack.{name}")


@pytest.mark.parametrize("name", primitive.names())
def test_each_primitive_is_defined_where_the_table_says(name: str) -> None:
    found = primitive.find(name)
    assert found is not None and found.name == name


def test_readers_of_te_find_what_carries_schedules_out() -> None:
    assert callable(importlib.import_module(schedule_interface.ENGINE).create_schedule)


def test_sources_of_cache_keys_are_all_folders_that_compile() -> None:
    assert set(keys.SOURCES) == set(TOP_FOLDERS) - {"driver", "editor", "fuzz"}
    assert all((ROOT / name).is_dir() for name in keys.SOURCES)
    # The folder of the sources is found from the place of the file that lists them.
    assert Path(keys.__file__).parents[3] == ROOT


def test_files_that_decide_how_rules_are_read_are_there() -> None:
    for name in shipped._CODE:  # pyright: ignore[reportPrivateUsage]
        assert (ROOT / name).is_file(), name


def test_dialects_of_the_universe_can_be_loaded() -> None:
    for name, make in universe.dialect_factories().items():
        assert make().name == name


@pytest.mark.parametrize("package", PACKAGES)
def test_each_name_of_a_lazy_package_can_be_had(package: str) -> None:
    module = importlib.import_module(package)
    for name in dir(module):
        getattr(module, name)


def test_pyproject_lists_every_package() -> None:
    import tomllib

    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    there = {path.parent for top in TOP_FOLDERS for path in (ROOT / top).rglob("*.py")}
    assert set(listed) == {"mirstack"} | {f"mirstack.{'.'.join(path.relative_to(ROOT).parts)}" for path in there}
    assert all((path / "__init__.py").is_file() for path in there)


def test_test_files_have_names_of_their_own() -> None:
    """pytest imports them by their base names, whatever their folders are called."""
    names = [file.name for file in (ROOT / "tests").rglob("test_*.py")]
    assert len(names) == len(set(names)), sorted(name for name in set(names) if names.count(name) > 1)
