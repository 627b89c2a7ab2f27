"""Computes the work of kernels, and the schedule rules that apply to them, for profiles.

    @T.prim_func dense(A (n, 64), B (8, 64), C (n, 8))    →    operations 1024 * n, bytes 288 * n + 2048, rule "contractions"

It works on copies, before the kernels are scheduled: kernels from the cache are not lowered, and have the same work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ...dialects import te, tir
from ...dialects.array_box import numpy_dtype
from ...dialects.schedule import RuleOp, ScriptOp
from ...passes.autoschedule.default_schedule import rules_applied
from ...passes.schedule.apply_schedule import is_scheduled
from ...passes.tir.estimate_flops import Accesses, Terms, estimate_flops
from ...passes.tir.rewriting import prim_funcs
from ...support.diagnostics import MirError
from ...support.target import named
from ..mangle_symbols import linked_name
from ..pipeline import Options, make
from ..tir.lower_tir_to_scf import Parameters, parameters_of
from ..tir.signature import BufferParam, Size
from .profile_facts import KernelWork

WRITTEN = "written schedule"
"""The rule of a kernel that the program schedules itself."""

_KERNELS = te.FuncOp | tir.PrimFuncOp | te.ScheduleOp | ScriptOp | RuleOp


def work_of_kernels(module: ModuleOp, options: Options) -> dict[str, KernelWork]:
    """Returns the work of the module's TE and TIR functions by the names that the linker knows.

    The module stays as it is; it is empty where the module cannot be lowered, which compiling it reports.
    """
    copy = ModuleOp([op.clone() for op in module.ops if isinstance(op, _KERNELS)])
    try:
        make("lower-te-to-tir").apply(Context(), copy)
        work = {each.sym_name.data: _work_of(each) for each in prim_funcs(copy)}
        make("apply-schedule", mark=True).apply(Context(), copy)
        rules = {each.sym_name.data: _rule_of(each, options) for each in prim_funcs(copy)}
    except MirError:
        return {}
    return {linked_name(name): replace(work.get(name, KernelWork()), rule=rule) for name, rule in rules.items()}


def _rule_of(function: tir.PrimFuncOp, options: Options) -> str:
    """Returns the names of the schedule rules that change a function; none where it keeps its loops."""
    if is_scheduled(function):
        return WRITTEN
    if options.opt_level == 0:
        return ""
    target = named(options.cpu or "", options.threads or None, options.caches)
    return ", ".join(rules_applied(function, target, options.strict_math))


def _work_of(function: tir.PrimFuncOp) -> KernelWork:
    """Returns the work of a function that is not scheduled yet."""
    work = estimate_flops(function)
    if work is None:
        return KernelWork()
    parameters = parameters_of(function)
    known = {dtype: _sum(terms, parameters.size_of) for dtype, terms in work.operations.items()}
    return KernelWork(_added(list(known.values())), known.get("float32", 0), _bytes_of(parameters, work.accesses))


def _bytes_of(parameters: Parameters, accesses: Sequence[Accesses]) -> Size | None:
    """Returns the bytes of the parameters' elements that are accessed, each read once and written once.

    No more count than there are accesses: a gather does not read its whole table.
    """
    parts: list[Size | None] = []
    for param, accessed in zip(parameters.signature.params, accesses, strict=True):
        if isinstance(param, BufferParam):
            elements = _product([*param.shape, numpy_dtype(param.dtype).itemsize])
            for terms in (accessed.loads, accessed.stores):
                touched = _sum(terms, parameters.size_of)
                parts.append(None if touched is None else _least(elements, touched, param))
    return _added(parts)


def _least(elements: Size, touched: Size, param: BufferParam) -> Size:
    touched = _product([touched, numpy_dtype(param.dtype).itemsize])
    if isinstance(elements, int) and isinstance(touched, int):
        return min(elements, touched)
    return "min", elements, touched


def _sum(terms: Terms, size_of: Callable[[SSAValue], Size]) -> Size | None:
    """Returns a sum of products as a size; None where an extent is not known before a call."""
    try:
        return _added([_product([number, *map(size_of, extents)]) for extents, number in terms.items()])
    except MirError:
        return None


def _product(factors: Sequence[Size]) -> Size:
    number = prod(each for each in factors if isinstance(each, int))
    return 0 if number == 0 else _chain("*", number, 1, [each for each in factors if not isinstance(each, int)])


def _added(parts: Sequence[Size | None]) -> Size | None:
    known = [each for each in parts if each is not None]
    if len(known) < len(parts):
        return None
    number = sum(each for each in known if isinstance(each, int))
    return _chain("+", number, 0, [each for each in known if not isinstance(each, int)])


def _chain(operator: str, number: int, neutral: int, terms: Sequence[Size]) -> Size:
    """Returns terms and a number under one operator; the number is left out where it is neutral."""
    result: Size = number
    for place, term in enumerate(terms):
        joined: Size = (operator, result, term)
        result = term if place == 0 and number == neutral else joined
    return result
