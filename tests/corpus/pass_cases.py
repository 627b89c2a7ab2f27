"""The golden cases of Relay passes: what TVM made of a program, counted, and how what is made here compares.

A case is a folder's `.in.relay`, `.out.relay` and json (see the corpus's README). Ops are counted as in the json: each once,
however often it is used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from mirstack.dialects.relay import ir
from mirstack.dialects.relay.interpreter import flatten, interpret
from mirstack.dialects.relay.operator import OperatorOp
from mirstack.driver.check_each import array_difference, first_difference
from mirstack.driver.check_each import interpret as interpret_random
from mirstack.driver.errors import UsageError
from mirstack.driver.pipeline import read_pipeline
from mirstack.parser import parse_mir
from mirstack.passes.registry import pass_factories
from mirstack.passes.relay.common.function_attributes import is_primitive
from mirstack.support.diagnostics import MirError
from mirstack.support.walk import walk_ops
from reference import Case
from relay_reference import NOT_THE_PROGRAM
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

_NAMES: dict[type[Operation], str] = {
    ir.TupleOp: "<tuple>",
    ir.TupleGetItemOp: "<tuple_get_item>",
    ir.LetOp: "<let>",
    ir.IfOp: "<if>",
    ir.MatchOp: "<match>",
    ir.CallGlobalOp: "<global>",
    ir.ConstructOp: "<ctor>",
}


@dataclass(frozen=True)
class Counts:
    """What is compared. `operators` is the histogram; `constants` counts the uses of constants; `groups` holds the
    operators of each Primitive function, sorted."""

    operators: dict[str, int]
    constants: int
    functions: int
    groups: list[list[str]]

    @staticmethod
    def of(module: ModuleOp) -> Counts:
        """Counts a module."""
        histogram = Counter[str]()
        groups: list[list[str]] = []
        functions = [op for op in module.ops if isinstance(op, ir.FuncOp)]
        constants = 0
        for op in (op for function in functions for op in walk_ops(function)):
            if isinstance(op, OperatorOp):
                histogram[op.OPERATOR.name] += 1
            elif isinstance(op, ir.CallOp):
                histogram["<func>" if isinstance(op.callee.owner, ir.FnOp) else "<expr>"] += 1
            elif type(op) in _NAMES:
                histogram[_NAMES[type(op)]] += 1
            elif isinstance(op, ir.FuncOp | ir.FnOp) and is_primitive(op):
                groups.append(sorted(o.OPERATOR.name for o in walk_ops(op) if isinstance(o, OperatorOp)))
            constants += sum(isinstance(operand.owner, ir.ConstantOp) for operand in op.operands)
        return Counts(dict(histogram), constants, len(functions), sorted(groups))

    @staticmethod
    def recorded(record: dict[str, Any], module: ModuleOp | None) -> Counts:
        """What the json says. Its number of constants counts shared ones once, which the text does not tell: `module`,
        read from the text where it can be, gives that of their uses."""
        histogram = {name: n for name, n in record["hist"].items() if name != "<const>"}
        groups = sorted(sorted(group) for group in record["groups"])
        constants = record["hist"].get("<const>", 0) if module is None else Counts.of(module).constants
        return Counts(histogram, constants, record["functions"], groups)

    def difference(self, other: Counts) -> str | None:
        """In words: what TVM has (`self`), and what is here."""
        found: list[str] = []
        for name in sorted({*self.operators, *other.operators}):
            tvm, here = self.operators.get(name, 0), other.operators.get(name, 0)
            if tvm != here:
                found.append(f"{name}: {tvm} in TVM, {here} here")
        for field in ("constants", "functions", "groups"):
            tvm, here = getattr(self, field), getattr(other, field)
            if tvm != here:
                found.append(f"{field}: {tvm} in TVM, {here} here")
        return "; ".join(found) or None


# Arguments of `direct_*` cases, seen inside TVM's own tests, which do not record them; by pass or by case.
_BFLOAT16 = {"mixed_precision_type": "bfloat16"}
_DIRECT_ARGS: dict[str, dict[str, Any]] = {
    "CombineParallelBatchMatmul": {"min_num_branches": 2},
    "CombineParallelConv2D": {"min_num_branches": 2},
    "CombineParallelDense": {"min_num_branches": 2, "to_batch": False},
    **{f"CombineParallelDense/direct_{n}": {"min_num_branches": 2, "to_batch": True} for n in ("000", "002")},
    **{f"FoldConstant/direct_{n}": {"fold_qnn": True} for n in ("012", "014")},
    **{f"FuseOps/direct_{n}": {"fuse_opt_level": 0} for n in ("002", "007", "013", "015")},
}


# Their text after has constructors called 0 and 2.
UNREADABLE = ("Defunctionalization/002",)


class PassCase(Case):
    """One case of a pass."""

    @property
    def id(self) -> str:
        """`FuseOps/opt2_015`."""
        return f"{self.folder}/{self.name}"

    @property
    def folder(self) -> str:
        """The name of the pass in the corpus."""
        return self.json_path.parent.name

    @cached_property
    def args(self) -> dict[str, Any]:
        """The pass's arguments."""
        if self.info.get("args") is not None:
            return self.info["args"]
        if self.folder == "ToMixedPrecision":
            return _BFLOAT16 if "bfloat16" in self.info["test"] else {"mixed_precision_type": "float16"}
        return _DIRECT_ARGS.get(self.id) or _DIRECT_ARGS.get(self.folder, {})

    @property
    def is_refused(self) -> bool:
        """Whether TVM refuses the program."""
        return "error" in self.info

    @property
    def only_outputs(self) -> bool:
        """Whether the program that comes out is of a target's or a test hook's choice."""
        return self.folder in ("AlterOpLayout", "Legalize") or (
            "TempOpAttr" in self.info.get("note", "") and self._hooked
        )

    @property
    def _hooked(self) -> bool:
        return self.info.get("recorded_pass") == "sequential"

    @property
    def pass_names(self) -> list[str]:
        """The passes that are run, by their names in the registry."""
        return [re.split(r"[{]", part)[0] for part in self._parts()]

    @property
    def pipeline(self) -> str:
        """What `mir-opt -p` is given."""
        return ",".join(self._parts())

    def _parts(self) -> list[str]:
        if "sequence" in self.args:
            return [_sequence_part(text) for text in self.args["sequence"]]
        options = [_option(name, value) for name, value in self.args.items() if name not in ("target", "opt_level")]
        name = pass_name(self.folder)
        if self.args.get("pass") == "qnn Legalize":
            name, options = "qnn-legalize", []
        return [f"{name}{{{' '.join(options)}}}" if options else name]

    def read(self, suffix: str) -> ModuleOp:
        """The program before (`.in.relay`) or after (`.out.relay`), with its types."""
        path = self.json_path.with_suffix(suffix)
        return parse_mir(path.read_text(), str(path), directory=str(path.parent))

    def expected_counts(self) -> Counts:
        """TVM's, after the pass: the json's, or those of the text where the json has none."""
        if self.id in UNREADABLE:
            return Counts.recorded(self.info["after"], None)
        module = self.read(".out.relay")
        return Counts.recorded(self.info["after"], module) if "after" in self.info else Counts.of(module)

    def run(self, module: ModuleOp) -> None:
        """Applies the pass."""
        for module_pass in read_pipeline(self.pipeline, pass_factories()):
            module_pass.apply(Context(), module)

    def compare_outputs(self, before: ModuleOp, after: ModuleOp) -> None:
        """Interprets: `after` gives what the corpus records; where nothing is recorded, what `before` gives."""
        recorded = self.executable and self.info.get("out_matches", True) is not False
        if recorded and self.id not in NOT_THE_PROGRAM:
            outputs = flatten(interpret(after, "main", self.inputs()))
            half = any(o.dtype.name in ("float16", "bfloat16") for o in outputs) or "float16" in self.text
            scale = max((float(np.nanmax(np.abs(o.astype(np.float64)), initial=0.0)) for o in outputs), default=0.0)
            self.check(outputs, atol=max(1e-5, scale * (2e-2 if half else 1e-6)))
            return
        try:
            expected = interpret_random(before, 0)
        except (MirError, UsageError):
            return  # A function of functions, or of sizes that do not fit each other: nothing to run.
        if not all(isinstance(value, np.ndarray) for value in cast("dict[str, object]", expected).values()):
            return  # Functions cannot be compared.
        results = interpret_random(after, 0)
        if self.folder == "FirstOrderGradient":  # Gives the gradients behind what the program gave before.
            results = {name: results[name] for name in expected}
        if self.folder.endswith("FoldScaleAxis"):  # What rounding differs is large where terms cancel.
            assert _narrow_difference(expected, results, "float32") is None
            return
        if self.folder == "ToMixedPrecision":
            assert _narrow_difference(expected, results, self.args["mixed_precision_type"]) is None
            return
        if self.folder == "FakeQuantizationToInteger":
            assert _rounding_difference(expected, results) is None
            return
        difference = first_difference(expected, results)
        assert difference is None, difference


def _narrow_difference(expected: dict[str, np.ndarray], results: dict[str, np.ndarray], dtype: str) -> str | None:
    """Where results computed in `dtype` differ by more than a few of its roundings, relative to the largest element."""
    for name, old in expected.items():
        scale = float(np.nanmax(np.abs(old.astype(np.float64)), initial=0.0))
        tolerance = {"float32": 2e-6, "float16": 5e-3, "bfloat16": 4e-2}[dtype]
        difference = array_difference(old, results[name].astype(old.dtype), tolerance, tolerance * scale)
        if difference is not None:
            return name + difference
    return None


def _rounding_difference(expected: dict[str, np.ndarray], results: dict[str, np.ndarray]) -> str | None:
    """Where integers differ by more than rounding before they are requantized, from twice the scale to half, explains."""
    for name, old in expected.items():
        difference = array_difference(old.astype(np.float64), results[name].astype(np.float64), 0.0, 4.0)
        if difference is not None or old.dtype != results[name].dtype:
            return f"{name}{difference}"
    return None


def pass_name(folder: str) -> str:
    """`ToANormalForm` as `to-a-normal-form`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", folder.replace("2D", "2d")).lower()


def _sequence_part(text: str) -> str:
    """`FuseOps(2)`."""
    name, _, argument = text.partition("(")
    return pass_name(name) + (f"{{fuse-opt-level={argument.rstrip(')')}}}" if argument else "")


_OPTION_NAMES = {"entry": "entry-functions", "desired_layouts": "layouts"}


def _option(name: str, value: Any) -> str:
    return f"{_OPTION_NAMES.get(name, name.replace('_', '-'))}={_value(value)}"


def _value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case dict():
            items = cast("dict[str, list[str]]", value).items()
            return '"' + ";".join(f"{operator}:{','.join(layouts)}" for operator, layouts in items) + '"'
        case list():
            return ",".join(map(_value, cast("list[Any]", value)))
        case str():
            return f'"{value}"'
        case _:
            return str(value)


def load_cases(folders: Iterable[Path]) -> list[PassCase]:
    """The cases of the folders, in order; one that TVM refuses has no text after."""
    found = [PassCase(path, ".in.relay") for folder in folders for path in folder.glob("*.json")]
    return sorted(found, key=lambda case: (case.folder, case.name))
