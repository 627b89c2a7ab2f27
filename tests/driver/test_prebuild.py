"""What is made ahead is that of the sources beside it, and is used."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from mirstack.driver import prebuild
from mirstack.parser import lalr
from mirstack.passes.rules.engine import shipped


def test_what_ships_is_up_to_date() -> None:
    stale = [str(path) for path, text in prebuild.prebuilt() if not path.exists() or path.read_text() != text]
    assert not stale, f"run `make prebuilt`: {stale}"


def test_nothing_is_made_where_it_is_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRSTACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(lalr, "_analyse", lambda _: pytest.fail("a grammar was analysed"))
    monkeypatch.setattr(shipped, "_make_index", lambda *_: pytest.fail("rules were indexed"))
    for grammar in sorted(prebuild.ROOT.glob("parser/*/*.lark")):
        assert lalr.load_table.__wrapped__(grammar).rules
    for rules in sorted(prebuild.ROOT.glob("passes/*/*.mir")):
        assert shipped.read_shipped(rules).rules
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"digest": "", "value": {}}', '{"value": {}}'])
def test_what_does_not_fit_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    monkeypatch.setenv("MIRSTACK_CACHE", str(tmp_path / "cache"))
    grammar = prebuild.ROOT / "parser" / "rules" / "rules.lark"
    own = tmp_path / "rules.lark"
    shutil.copy(grammar, own)
    own.with_suffix(".json").write_text(damage)
    assert lalr.load_table(own).actions == lalr.load_table(grammar).actions
    assert list((tmp_path / "cache").glob("rules-*.json"))


def test_only_what_changed_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, same = tmp_path / "a.json", tmp_path / "b.json"
    same.write_text("2")
    monkeypatch.setattr(prebuild, "ROOT", tmp_path)
    monkeypatch.setattr(prebuild, "prebuilt", lambda: iter([(path, "1"), (same, "2")]))
    prebuild.main()
    prebuild.main()
    assert path.read_text() == "1" and capsys.readouterr().out == "a.json\n"
