"""Checks that a rule keeps types and meaning: the interpreter runs both sides on generated programs.

What must be equal depends on the rule. One that is not marked must return equal bits for all that floats can be (of a NaN, that it is one);
where its ops reduce, in sums whose order may differ: bits where every number that is met is whole, and so no order rounds, otherwise
equal to rounding, with the same NaN and infinities. One marked `fast` must return equal numbers, to rounding, of ordinary ones. Integers
must always be equal.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from .....dialects.relay import ConstantOp, FuncOp
from .....dialects.relay.interpreter import Activation, Interpreter, Value, flatten
from .....dialects.relay.operator import OperatorOp, OpPattern
from .....dialects.rule import RewriteOp
from .....support.diagnostics import Diagnostic, MirError
from .....support.walk import walk_ops
from ...engine.program import Program, compile_rule
from ...engine.rewriter import apply_at
from .generate import Instance, instances, kind_of_input
from .inputs import draw

Array = NDArray[Any]

WANTED, ATTEMPTS = 16, 600
"""How many programs a rule is checked on, and how many are made at most to find them."""

SECONDS, PATIENCE = 5.0, 20.0
"""How long a rule is checked once some program was found, and until the first is."""

ELEMENTS, MOST_RUNS = 240, 12
"""How many elements special values are drawn for in a program, all in all, and in how many runs at most."""

TOLERANCE = {"float64": 1e-6, "float32": 1e-3, "float16": 6e-2, "bfloat16": 2e-1}
"""Of rules marked `fast`, relative to the greatest magnitude that is met while either side is computed, or 1."""

ROUNDING = {"float64": 1e-13, "float32": 1e-5, "float16": 1e-2, "bfloat16": 6e-2}
"""Of sums in another order, likewise."""

_FAST = ("numbers", "positive numbers", "halves", "whole numbers", "numbers", "zeros", "ones", "numbers")
_EXACT = (
    "numbers",
    "whole numbers",
    "zeros",
    "negative zeros",
    "ones",
    "NaN, infinities and zeros",
    "halves",
    "numbers",
)
_REDUCING = (
    *("whole numbers", "numbers", "some special values", "zeros", "negative zeros", "ones", "large numbers"),
    *("whole numbers", "some special values", "some special values"),
)
"""Kinds of inputs: of rules marked `fast`, of others, and of those whose ops reduce."""


@dataclass(frozen=True)
class _Run:
    """One run of a program: its inputs, its results, and all float numbers computed on the way."""

    kind: str
    args: list[Any]
    results: list[Array]
    met: list[Array]


def check_meaning(rule: RewriteOp, examples: Sequence[ModuleOp] = ()) -> Diagnostic | None:
    """Checks one rule of Relay; returns the problem, or None.

    It is applied once to each of some programs: those of `examples` in which it matches, and generated ones. Types must
    stay, and the results must agree as far as the rule's mark asks for it.
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
    """Applies the rule to one program.

    Returns whether it could be observed, and the problem if there is one.
    """
    module = instance.module
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    before_text = module.clone()
    reduces = any(isinstance(op, OperatorOp) and op.OPERATOR.pattern in _REDUCES for op in walk_ops(function))
    runs = list(_runs(module, function, _FAST if rule.is_fast else _REDUCING if reduces else _EXACT))
    if not runs:
        return False, None
    try:
        if not apply_at(instance.roots[0], program):
            return False, None
    except MirError as error:
        return True, error.diagnostics[0].with_note(_seen_on(before_text))
    reduces = reduces or any(
        isinstance(op, OperatorOp) and op.OPERATOR.pattern in _REDUCES for op in walk_ops(function)
    )
    for run in runs:
        try:
            new = _run(module, function, run.kind, run.args)
        except MirError as error:
            message = f"rule @{program.name} makes a program that fails: {error.diagnostics[0].message}"
            return True, Diagnostic(message, rule.location).with_note(_seen_on(before_text))
        difference = _difference(run, new, "fast" if rule.is_fast else "sums" if reduces else "bits")
        if difference is not None:
            diagnostic = Diagnostic(f"rule @{program.name} changes the meaning: {difference}", rule.location)
            diagnostic = diagnostic.with_note(f"seen with {run.kind} as inputs").with_note(_seen_on(before_text))
            if not rule.is_fast and any(array.dtype.kind not in "iub" for array in run.results):
                note = "one that holds for real numbers, and not for all that floats can be, says so: fast rewrite @…"
                diagnostic = diagnostic.with_note(note)
            return True, diagnostic
    return True, None


_REDUCES = (OpPattern.COMM_REDUCE, OpPattern.OUT_ELEMWISE_FUSABLE, OpPattern.OPAQUE)


def _runs(module: ModuleOp, function: FuncOp, kinds: Sequence[str]) -> Iterator[_Run]:
    """Runs the program on inputs of each kind, and on special values until there were enough of them."""
    params = [(param.type, kind_of_input(param)) for param in function.params]

    def attempt(kind: str, seed: int) -> _Run | None:
        generators = (np.random.default_rng(seed * 31 + k) for k in range(len(params)))
        args = [draw(type, fixed or kind, each) for (type, fixed), each in zip(params, generators, strict=True)]
        try:
            return _run(module, function, kind, args)
        except MirError:
            return None  # Inputs on which the left side has no meaning, such as indices out of bounds.

    found = [run for seed, kind in enumerate(kinds) if (run := attempt(kind, seed)) is not None]
    yield from found
    if kinds is not _EXACT or not found:
        return
    elements = max((array.size for arg in found[0].args for array in flatten(arg)), default=0)
    for seed in range(min(MOST_RUNS, -(-ELEMENTS // elements) if elements else 0)):
        for kind in ("special values", "numbers", "NaN, infinities and zeros")[: 3 if seed % 4 == 0 else 2]:
            run = attempt(kind, 100 + seed)
            if run is not None:
                yield run


class _Recorder(Interpreter):
    """Keeps all float arrays that ops compute."""

    def __init__(self, module: ModuleOp):
        super().__init__(module)
        self.met: list[Array] = []

    def _operator(self, op: OperatorOp, scope: Activation) -> Value:
        value = super()._operator(op, scope)
        self.met += _floats(value)
        return value


def _floats(value: Value) -> list[Array]:
    return [array for array in flatten(value) if array.dtype.kind not in "iub"]


def _run(module: ModuleOp, function: FuncOp, kind: str, args: list[Any]) -> _Run:
    """Raises MirError where the program has no meaning on the arguments."""
    recorder = _Recorder(module)
    results = flatten(recorder.call(function.sym_name.data, args))
    constants = [op.value.array for op in walk_ops(function) if isinstance(op, ConstantOp)]
    met = [*recorder.met, *(array for value in (*args, *constants) for array in _floats(value))]
    return _Run(kind, args, results, met)


def _seen_on(module: ModuleOp) -> str:
    """The program, and its constants in words rather than as they are stored."""
    from .....parser import print_mir
    from .....parser.relay.metadata import Metadata

    program, _, section = print_mir(module).removeprefix('#[version = "0.0.5"]\n').partition("#[metadata]")
    constants = Metadata(section)
    with np.printoptions(threshold=32):
        stored = [constants.constant(place) for place in range(constants.count("relay.Constant"))]
        words = [
            f"meta[relay.Constant][{place}] is {array.tolist() if array.size < 32 else array}"
            for place, array in enumerate(stored)
        ]
    return "\n".join(["seen on this program:", program.rstrip(), *words])


def _difference(old: _Run, new: _Run, contract: str) -> str | None:
    """Describes the difference between two runs; `contract` is "bits", "sums" or "fast".

    None if they agree.
    """
    if len(old.results) != len(new.results):
        return f"{len(old.results)} results became {len(new.results)}"
    if contract == "sums" and _is_whole([*old.met, *new.met]):
        contract = "bits"
    for a, b in zip(old.results, new.results, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"a result of shape {a.shape} and dtype {a.dtype} has {b.shape} and {b.dtype} now"
        wrong = ~_agrees(a, b, contract, old, new)
        if np.any(wrong):
            where = tuple(int(i) for i in np.argwhere(wrong)[0]) if a.ndim else ()
            at = f" at {list(where)}" if where else ""
            return f"{_shown(a[where])} became {_shown(b[where])}{at}"
    return None


def _shown(value: Any) -> str:
    return str(value) if value.dtype.kind in "iub" else repr(float(value))


def _agrees(a: Array, b: Array, contract: str, old: _Run, new: _Run) -> NDArray[np.bool_]:
    """For each element, whether the results agree."""
    if a.dtype.kind in "iub":
        return np.asarray(a == b)
    same = (a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))
    if contract == "bits":
        return np.asarray(same)
    x, y = a.astype(np.float64), b.astype(np.float64)
    tolerance = (TOLERANCE if contract == "fast" else ROUNDING).get(a.dtype.name, 1e-3)
    scale = max(1.0 if contract == "fast" else 0.0, _magnitude([*old.met, *new.met]))
    close = np.abs(x - y) <= tolerance * scale
    if contract == "fast":
        return np.asarray(same | close | ~np.isfinite(x))
    return np.asarray(same | (close & np.isfinite(x) & np.isfinite(y)))


def _is_whole(arrays: Sequence[Array]) -> bool:
    """Returns whether all finite numbers are small multiples of 1/8, whose sums are not rounded."""
    most = {"float64": 2.0**40, "float32": 2.0**16, "float16": 2.0**6, "bfloat16": 2.0**3}
    for array in arrays:
        eighths = array.astype(np.float64) * 8
        finite = eighths[np.isfinite(eighths)]
        if np.any(finite != np.rint(finite)) or np.any(np.abs(finite) > 8 * most.get(array.dtype.name, 8.0)):
            return False
    return True


def _magnitude(arrays: Sequence[Array]) -> float:
    """The greatest finite magnitude."""
    most = 0.0
    for array in arrays:
        values = np.abs(array.astype(np.float64))
        most = max(most, float(np.max(values, initial=0.0, where=np.isfinite(values))))
    return most


def examples_of(module: ModuleOp) -> list[ModuleOp]:
    """Returns the typed functions of a file of rules as examples.

    Raises MirError if a type cannot be inferred.
    """
    if not any(isinstance(op, FuncOp) for op in module.ops):
        return []
    from .....dialects.relay.infer import infer_types

    infer_types(module)
    return [module]
