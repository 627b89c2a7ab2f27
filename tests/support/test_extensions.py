"""Definitions of extensions: kept by kind and name, and a part of the key of what is compiled."""

from collections.abc import Iterator

import pytest
from mirstack.lowering.driver.cache.keys import context_key
from mirstack.lowering.options import Options
from mirstack.support import extensions
from mirstack.support.diagnostics import MirError
from mirstack.support.extensions import digest, find, forget, loaded, register


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(extensions, "_DEFINITIONS", {})
    yield


def test_definitions_by_kind_and_name():
    first = register("target", "mine", 1, origin="a.mir", text="target mine")
    register("rule.rewrite", "mine", 2, origin="a.mir", text="rewrite")
    assert find("target", "mine") is first
    assert register("target", "mine", 3, origin="b.mir", text="target mine") is first
    assert [each.value for each in loaded()] == [1, 2]
    assert [each.value for each in loaded("rule.rewrite")] == [2]
    forget("target", "mine")
    assert find("target", "mine") is None


def test_a_name_has_one_meaning():
    register("target", "mine", 1, origin="a.mir", text="lanes = 4")
    with pytest.raises(MirError, match=r"b\.mir defines mine, which a\.mir has defined") as raised:
        register("target", "mine", 2, origin="b.mir", text="lanes = 8")
    assert "one of the two needs another name" in str(raised.value)
    with pytest.raises(MirError, match="a process keeps what it has loaded: begin another one"):
        register("target", "mine", 2, origin="a.mir", text="lanes = 8")


def test_the_key_of_what_is_compiled_takes_in_extensions():
    keys = [context_key(Options())]
    for text in ("lanes = 4", "lanes = 8"):
        register("target", text, None, origin="a.mir", text=text)
        keys.append(context_key(Options()))
    assert len({*keys}) == 3 and None not in keys
    register("target", "python", None, origin="m.py", text=None)
    assert digest() is None and context_key(Options()) is None
