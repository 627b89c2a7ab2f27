"""Whether a rule keeps types and meaning: both sides run by the interpreter on generated programs and inputs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp, TensorType, TupleType
from xdsl.ir import Attribute

from ....dialects.array import numpy_dtype
from ....dialects.relay import FuncOp
from ....dialects.relay.interpreter import flatten, interpret
from ....dialects.rule import RewriteOp
from ....dialects.rule.functions import dtype_name
from ....support.diagnostics import Diagnostic, MirError
from ....support.walk import walk_ops
from ..program import Program, compile_rule
from ..rewriter import apply_at
from .generate import Instance, instances

WANTED, ATTEMPTS = 12, 600
"""How many programs a rule is checked on, and how many are made at most to find them."""

SECONDS, PATIENCE = 0.5, 10.0
"""How long a rule is checked once some program was found, and until the first is."""

TOLERANCE = {"float64": 1e-6, "float32": 1e-3, "float16": 6e-2, "bfloat16": 2e-1}
"""Relative to the greatest magnitude among inputs and results; integers must be equal."""

_KINDS = ("random", "zeros", "negative zeros", "ones", "extremes", "random")


def check_meaning(rule: RewriteOp, examples: Sequence[ModuleOp] = ()) -> Diagnostic | None:
    """What is wrong with a rule of Relay, or None.

    It is applied once to each of some programs: those of `examples` in which it matches, and generated ones. Types must
    stay, and the results on random inputs, zeros, ones and extreme integers must agree wherever the left side is finite.
    """
    program = compile_rule(rule)
    exercised = 0
    started = time.monotonic()
    for instance in _candidates(rule, program, examples):
        if time.monotonic() - started > (SECONDS if exercised else PATIENCE):
            break
        if instance is None:
            continue
        try:
            if program.match(instance.roots[0]) is None:
                continue
        except MirError as error:
            return error.diagnostics[0].with_note(_seen_on(instance.module))
        used, problem = _check_instance(rule, program, instance)
        if problem is not None:
            return problem
        exercised += used
        if exercised >= WANTED:
            break
    if not exercised:
        return Diagnostic(
            f"rule @{program.name} is not exercised: no program was found that it applies to", rule.location
        ).with_note("write a function to which it applies into the file with the rule, as an example")
    return None


def _candidates(rule: RewriteOp, program: Program, examples: Sequence[ModuleOp]) -> Iterator[Instance | None]:
    for module in examples:
        functions = [op for op in module.ops if isinstance(op, FuncOp)]
        for function in functions:
            places = [k for k, op in enumerate(walk_ops(function)) if op.name in program.root_names]
            for place in places:
                alone = ModuleOp([function.clone()])
                (copy,) = alone.ops
                root = list(walk_ops(copy))[place]
                if program.match(root) is not None:
                    yield Instance(alone, (root,))
    yield from instances(rule, ATTEMPTS)


def _check_instance(rule: RewriteOp, program: Program, instance: Instance) -> tuple[bool, Diagnostic | None]:
    """Whether the rule could be seen at work on a program, and what was wrong."""
    module = instance.module
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    before_text = module.clone()
    name = function.sym_name.data
    types = [param.type for param in function.params]
    runs: list[tuple[str, list[Any], list[NDArray[Any]]]] = []
    for seed, kind in enumerate(_KINDS):
        args = [_draw(type, kind, np.random.default_rng(seed * 31 + k)) for k, type in enumerate(types)]
        try:
            runs.append((kind, args, flatten(interpret(module, name, args))))
        except MirError:
            continue  # Inputs on which the left side has no meaning, such as indices out of bounds.
    if not runs:
        return False, None
    try:
        if not apply_at(instance.roots[0], program):
            return False, None
    except MirError as error:
        return True, error.diagnostics[0].with_note(_seen_on(before_text))
    for kind, args, wanted in runs:
        try:
            got = flatten(interpret(module, name, args))
        except MirError as error:
            message = f"rule @{program.name} makes a program that fails: {error.diagnostics[0].message}"
            return True, Diagnostic(message, rule.location).with_note(_seen_on(before_text))
        difference = _difference(wanted, got, args)
        if difference is not None:
            diagnostic = Diagnostic(f"rule @{program.name} changes the meaning: {difference}", rule.location)
            return True, diagnostic.with_note(f"seen with {kind} as inputs").with_note(_seen_on(before_text))
    return True, None


def _seen_on(module: ModuleOp) -> str:
    from ....parser import print_mir

    return "seen on this program:\n" + print_mir(module).removeprefix('#[version = "0.0.5"]\n').rstrip()


def _draw(type: Attribute, kind: str, generator: np.random.Generator) -> Any:
    if isinstance(type, TupleType):
        return tuple(_draw(each, kind, generator) for each in type.types.data)
    assert isinstance(type, TensorType)
    tensor = cast("TensorType[Any]", type)
    shape, dtype = tensor.get_shape(), numpy_dtype(dtype_name(tensor.element_type))
    if dtype.kind == "b":
        return np.zeros(shape, dtype) if kind == "zeros" else generator.integers(0, 2, shape).astype(dtype)
    integer = dtype.kind in "iu"
    match kind:
        case "zeros":
            return np.zeros(shape, dtype)
        case "negative zeros":
            return (-np.zeros(shape)).astype(dtype)
        case "ones":
            return np.where(generator.integers(0, 2, shape) == 1, 1, 1 if dtype.kind == "u" else -1).astype(dtype)
        case "extremes" if integer:
            info = np.iinfo(dtype.name)
            return generator.choice(np.array([info.min, info.min + 1, 0, 1, info.max], dtype), shape).astype(dtype)
        case "extremes":
            return np.asarray(generator.choice([-30.0, -8.0, 0.0, 1e-3, 30.0], shape)).astype(dtype)
        case _ if integer:
            return generator.integers(0 if dtype.kind == "u" else -4, 5, shape).astype(dtype)
        case _:
            return np.asarray(generator.uniform(-3, 3, shape)).astype(dtype)


def _difference(wanted: list[NDArray[Any]], got: list[NDArray[Any]], args: Iterable[Any]) -> str | None:
    if len(wanted) != len(got):
        return f"{len(wanted)} results became {len(got)}"
    arrays = [a for arg in args for a in flatten(arg)]
    for old, new in zip(wanted, got, strict=True):
        if old.shape != new.shape or old.dtype != new.dtype:
            return f"a result of shape {old.shape} and dtype {old.dtype} has {new.shape} and {new.dtype} now"
        if old.dtype.kind in "iub":
            wrong = old != new
        else:
            a, b = old.astype(np.float64), new.astype(np.float64)
            finite = np.isfinite(a)
            scale = max([1.0, *(_magnitude(x) for x in (*arrays, a))])
            with np.errstate(all="ignore"):
                wrong = finite & ~(np.abs(a - b) <= TOLERANCE.get(old.dtype.name, 1e-3) * scale)
        if np.any(wrong):
            where = tuple(int(i) for i in np.argwhere(wrong)[0]) if old.ndim else ()
            at = f" at {list(where)}" if where else ""
            return f"{old[where]} became {new[where]}{at}"
    return None


def _magnitude(array: NDArray[Any]) -> float:
    values = np.abs(array.astype(np.float64))
    values = values[np.isfinite(values)]
    return float(values.max()) if values.size else 0.0


def examples_of(module: ModuleOp) -> list[ModuleOp]:
    """The functions of a file of rules are examples; typed. Raises MirError where their types cannot be inferred."""
    if not any(isinstance(op, FuncOp) for op in module.ops):
        return []
    from ....dialects.relay.infer import infer_types

    infer_types(module)
    return [module]
