"""Rule files that ship are read as far as a program needs them, through an index that is made again when it is damaged."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from mirstack.dialects.relay.infer import infer_types
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.rules.engine import shipped
from mirstack.passes.rules.engine.library import load_rules, select_rules
from mirstack.passes.rules.engine.rewriter import RuleIndex, apply_rules
from mirstack.support.diagnostics import source_position
from xdsl.dialects.builtin import ModuleOp

RULES = """\
// A brace in a comment: }
ruleset @all { /* and { here */
  rewrite @sign benefit(2) { negative(abs(%x)) => negative(%x) where %x.dtype not in ["{", "int8"] }  rewrite @zero { %r = add(%x, 0) => %x where %r.type == %x.type }
}
rewrite @twice for tir { %x + %x => %x * 2 }
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of rules, with a cache folder of its own."""
    monkeypatch.setenv("MIRSTACK_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "some.mir"
    path.write_text(RULES)
    return path


def index_file(file: Path) -> Path:
    (found,) = (file.parent / "cache").glob("rules-some-*.json")
    return found


def program(body: str) -> ModuleOp:
    module = parse_mir(f"def @main(%x: Tensor[(2), float32]) {{ {body} }}")
    infer_types(module)
    return module


def read(rules: RuleIndex) -> list[str]:
    """The rules that were read."""
    return [each.head.name for each in rules.rules if "rule" in vars(each)]


def test_only_what_may_apply_is_read(file: Path):
    shipped.read_shipped(file)
    rules = shipped.read_shipped(file)
    module = program("add(exp(%x), 0f)")
    for op in module.ops:
        apply_rules(op, rules)
    assert "add" not in print_mir(module)
    assert read(rules) == ["zero"]
    assert [each.head.name for each in rules.rules] == ["sign", "zero", "twice"]


def test_a_rule_has_its_place_and_its_level(file: Path):
    shipped.read_shipped(file)
    sign, zero, twice = (each.rule for each in shipped.read_shipped(file).rules)
    lines = RULES.splitlines()
    for rule in (sign, zero, twice):
        name, line, column = source_position(rule.location) or ("", 0, 0)
        assert name == str(file)
        assert lines[line - 1][column - 1 :].startswith(f"rewrite @{rule.sym_name.data}")
    assert (twice.level.data, sign.benefit.value.data) == ("tir", 2)


@pytest.mark.parametrize(
    "path", sorted((Path(shipped.__file__).parents[2]).glob("**/*.mir")), ids=lambda path: path.stem
)
def test_rules_are_the_same_in_an_index(path: Path):
    rules = select_rules(load_rules(path))
    for read, stored in zip(rules, shipped.read_shipped(path).rules, strict=True):
        assert print_mir(ModuleOp([stored.rule.clone()])) == print_mir(ModuleOp([read.clone()]))
        stored.rule.verify()


def forged(stored: Any) -> Any:
    """The same with the check that belongs to it."""
    text = json.dumps(stored["rules"], separators=(",", ":"))
    return {**stored, "check": hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}


DAMAGES = {
    "text": lambda stored: "{",
    "none": lambda stored: "null",
    "number": lambda stored: "3",
    "no check": lambda stored: json.dumps({"rules": stored["rules"]}),
    "other check": lambda stored: json.dumps({**stored, "check": "00"}),
    "changed": lambda stored: json.dumps(stored).replace("relay.add", "relay.exp"),
    "empty entry": lambda stored: json.dumps(forged({"rules": [[]]})),
    "no list": lambda stored: json.dumps(forged({"rules": 7})),
    "names": lambda stored: json.dumps(forged({"rules": [[1, 1, ["a"], [], 1, 1, 1, "[]"]]})),
    "benefit": lambda stored: json.dumps(forged({"rules": [["a", "1", ["a"], [], 1, 1, 1, "[]"]]})),
    "place": lambda stored: json.dumps(forged({"rules": [["a", 1, ["a"], [], 1, None, 1, "[]"]]})),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_index_is_made_again(file: Path, damage: str):
    shipped.read_shipped(file)
    good = index_file(file).read_text()
    index_file(file).write_text(DAMAGES[damage](json.loads(good)))
    rules = shipped.read_shipped(file)
    assert [each.rule.sym_name.data for each in rules.rules] == ["sign", "zero", "twice"]
    assert index_file(file).read_text() == good


def test_an_index_of_another_file(file: Path):
    shipped.read_shipped(file)
    stored = json.loads(index_file(file).read_text())
    stored["rules"][0][1] = 5
    index_file(file).write_text(json.dumps(forged(stored)))
    with pytest.raises(RuntimeError, match=r"the index of some\.mir in .* is of another file: delete it"):
        shipped.read_shipped(file).rules[0].rule  # noqa: B018


def test_another_text_has_another_index(file: Path):
    shipped.read_shipped(file)
    file.write_text(RULES.replace("@twice", "@double"))
    assert shipped.read_shipped(file).rules[-1].rule.sym_name.data == "double"


def test_a_damaged_file(file: Path):
    file.write_text("rewrite @a { exp(%x) => %y }")
    with pytest.raises(RuntimeError, match=r"the rule file some\.mir that ships with mirstack is damaged"):
        shipped.read_shipped(file)


def test_without_a_cache_folder(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MIRSTACK_CACHE", "/dev/null/none")
    assert len(shipped.read_shipped(file).rules) == 3
