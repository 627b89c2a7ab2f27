"""Replays the corpus of recorded schedules: each step's call, and the comparison of the script that it leads to."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mirstack.dialects.tir import BufferType, PrimFuncOp, type_to_dtype
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.schedule import Schedule, ScheduleError
from mirstack.passes.schedule.engine.primitive import names
from mirstack.passes.schedule.primitives.transform_layout import AXIS_SEPARATOR
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import verify
from xdsl.dialects.builtin import ModuleOp


class IndexMap:
    """As the recorded calls name it."""

    AXIS_SEPARATOR = AXIS_SEPARATOR


KEYWORDS = frozenset(
    ["for", "in", "if", "else", "with", "as", "def", "and", "or", "not", "class", "while", "True", "False", "None"]
)


@dataclass
class Outcome:
    """How far a recorded schedule went: `same` steps were alpha-equal, `other` were not; `stopped` says why it ended early."""

    name: str
    same: int = 0
    other: list[str] = field(default_factory=list[str])
    stopped: str = ""
    refused_alike: bool = False


def supported(case: dict[str, Any]) -> bool:
    """Whether every call of the case is a primitive that exists, with arguments that can be read."""
    known = set(names()) | {"work_on"}
    return bool(case["self_contained"]) and all(call["prim"] in known for call in case["calls"])


def replay(path: Path) -> Outcome:
    """Runs one case."""
    case = json.loads(path.read_text())
    outcome = Outcome(path.stem)
    module = parse_mir(case["before"])
    schedule = Schedule(module)
    values: dict[str, Any] = {}
    for call in case["calls"]:
        before = print_mir(module)
        try:
            result = _apply(schedule, call, values)
        except ScheduleError as error:
            if print_mir(module) != before:
                outcome.stopped = f"{call['text']}: refused, but the module has changed"
            elif "error" in call or (case["error_class"] and call is case["calls"][-1]):
                outcome.refused_alike = True
            else:
                outcome.stopped = f"{call['text']}: refused: {error.diagnostics[0].message}"
            return outcome
        if "error" in call:
            outcome.stopped = f"{call['text']}: accepted, where TVM refuses"
            return outcome
        _keep(call, result, values)
        if "after" in call:
            expected = alpha(print_mir(parse_mir(call["after"])))
            if alpha(print_mir(module)) == expected:
                outcome.same += 1
            else:
                outcome.other.append(call["text"])
    verify(module)
    return outcome


def _apply(schedule: Schedule, call: dict[str, Any], values: dict[str, Any]) -> Any:
    tree = ast.parse(_repaired(call["text"].strip())).body[0]
    if isinstance(tree, ast.Assign):
        values["_targets"] = tree.targets[0]
        node = tree.value
    else:
        assert isinstance(tree, ast.Expr)
        values["_targets"] = None
        node = tree.value
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    args: list[Any] = []
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            args += _value(arg.value, values)
        else:
            args.append(_value(arg, values))
    kwargs = {k.arg: _value(k.value, values) for k in node.keywords if k.arg}
    if "sampled" in call:
        # What TVM drew is drawn again.
        kwargs.setdefault("decision", call["sampled"])
    if node.func.attr in BLOCKS_BY_NAME:
        # TVM takes a block's name for the block.
        args = [schedule.get_block(a) if isinstance(a, str) and k == 0 else a for k, a in enumerate(args)]
        if isinstance(kwargs.get("block"), str):
            kwargs["block"] = schedule.get_block(kwargs["block"])
    return getattr(schedule, node.func.attr)(*args, **kwargs)


def _repaired(text: str) -> str:
    """The text of a call: where that of a lambda runs on to the name of the next argument, which then follows, without it;
    `tir.const(0, i.dtype)` as 0."""
    text = re.sub(r",\s*(\w+)(?=,\s*\1\s*=)", "", text)
    return re.sub(r"tir\.const\((\w+), [\w.]+\)", r"\1", text)


BLOCKS_BY_NAME = [
    "get_loops",
    "compute_at",
    "reverse_compute_at",
    "compute_inline",
    "reverse_compute_inline",
    "cache_read",
    "cache_write",
    "set_scope",
    "decompose_reduction",
    "transform_layout",
    "pad_einsum",
    "get_producers",
    "get_consumers",
    "get_child_blocks",
    "annotate",
    "set_axis_separator",
    "storage_align",
    "unsafe_set_dtype",
    "reorder_block_iter_var",
]


def _value(node: ast.expr, values: dict[str, Any]) -> Any:
    match node:
        case ast.Name():
            return values[node.id]
        case ast.List() | ast.Tuple():
            return [_value(e, values) for e in node.elts]
        case ast.Subscript():
            return _value(node.value, values)[_value(node.slice, values)]
        case ast.Lambda():
            return eval(compile(ast.Expression(node), "<map>", "eval"), {"__builtins__": {}, "IndexMap": IndexMap})
        case _:
            return ast.literal_eval(node)


def _keep(call: dict[str, Any], result: Any, values: dict[str, Any]) -> None:
    target = values.pop("_targets", None)
    if target is not None:
        targets = [e.id for e in target.elts] if isinstance(target, ast.Tuple | ast.List) else [target.id]  # pyright: ignore[reportAttributeAccessIssue]
        _bind(targets, isinstance(target, ast.Tuple | ast.List), result, values)
    out = call.get("out")
    if isinstance(out, str):
        values[out] = result
    elif isinstance(out, list):
        _bind(out, True, result, values)


def _bind(targets: list[str], several: bool, result: Any, values: dict[str, Any]) -> None:
    for name, value in zip(targets, result if several else [result], strict=False):
        values[name] = value


def replayed(path: Path) -> tuple[str, Schedule]:
    """The program of a case, and the schedule after the steps that are not refused."""
    case = json.loads(path.read_text())
    schedule, values = Schedule(parse_mir(case["before"])), dict[str, Any]()
    for call in case["calls"]:
        try:
            result = _apply(schedule, call, values)
        except (MirError, NameError, SyntaxError):
            break
        _keep(call, result, values)
    return case["before"], schedule


def alpha(text: str) -> str:
    """The script with its variables numbered in order of appearance; names of blocks, in quotes, stay."""
    mapping: dict[str, str] = {}

    def rename(match: re.Match[str]) -> str:
        word = match[0]
        if word in KEYWORDS or word == "T":
            return word
        return mapping.setdefault(word, f"v{len(mapping)}")

    lines = [line for line in text.splitlines() if not line.strip().startswith("#") and "func_attr" not in line]
    return "\n".join(re.sub(r"(?<![\w.\"])[A-Za-z_]\w*(?![\w\"])", rename, line) for line in lines)


def available(corpus: Path) -> list[Path]:
    """The cases that only use primitives that exist."""
    return [p for p in sorted((corpus / "schedules").glob("*.json")) if supported(json.loads(p.read_text()))]


def same_results(path: Path) -> bool:
    """Whether the scheduled program computes what the given one does, on random data; True where it cannot be run."""
    import numpy as np

    case = json.loads(path.read_text())
    original, module = parse_mir(case["before"]), parse_mir(case["before"])
    schedule, values = Schedule(module), dict[str, Any]()
    for call in case["calls"]:
        _keep(call, _apply(schedule, call, values), values)
    generator = np.random.default_rng(0)
    for before, after in zip(_functions(original), _functions(module), strict=True):
        arguments: dict[str, Any] = {}
        for name, param in zip(before.param_names.data, before.params, strict=True):
            if not isinstance(param.type, BufferType) or param.type.static_shape is None:
                return True
            shape, dtype = param.type.static_shape, type_to_dtype(param.type.dtype)
            arguments[name.data] = generator.integers(0, 8, shape).astype(dtype)
        copies = {name: array.copy() for name, array in arguments.items()}
        interpret_prim_func(before, arguments, original)
        interpret_prim_func(after, copies, module)
        if not all(np.allclose(arguments[n], copies[n], rtol=1e-5, equal_nan=True) for n in arguments):
            return False
    return True


def _functions(module: ModuleOp) -> list[PrimFuncOp]:
    return [op for op in module.body.block.ops if isinstance(op, PrimFuncOp)]


__all__ = ["MirError", "Outcome", "available", "replay", "replayed", "same_results"]
