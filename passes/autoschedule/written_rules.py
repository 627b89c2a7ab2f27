"""Applies the schedule rules that were written for a kernel (`rule for nn.dense(%x, %w)`).

`match-schedule-rules` has named them in the function's attribute, with the numbers that their conditions computed:

    T.func_attr({"schedule_rule": "dense_rows(rows=4)"})    →    sch.split(i, [None, 4]) …
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Operation

from ...dialects import te, tir
from ...dialects.schedule import RuleOp
from ...dialects.tir.types import I1
from ...support.diagnostics import MirError, error_at
from ...support.extensions import find
from ...support.text import quoted
from ...support.trace import tracer
from ..pass_info import explanation
from ..schedule import Schedule
from ..schedule.apply_schedule import SCHEDULED
from ..schedule.engine.script import run_script
from ..schedule.engine.tensor_intrinsics import NAME, declaring, elsewhere
from .refusals import CURRENT_RULE, PASS
from .rule_names import RULE, RULE_TEXT
from .start_again import start_again

_CALL = re.compile(r"(\w+)\(([^()]*)\)")
_TEXTS: dict[str, Sequence[Operation]] = {}
"""Ops by the text that functions hold: those that it was printed of, otherwise those that it was read as."""


def listed(calls: Iterable[tuple[str, Mapping[str, int]]]) -> StringAttr:
    """Returns rules with their numbers as the attribute has them: `dense_rows(rows=4), other()`."""
    shown = (f"{name}({', '.join(f'{key}={value}' for key, value in given.items())})" for name, given in calls)
    return StringAttr(", ".join(shown))


def apply_written_rules(sch: Schedule, function: tir.PrimFuncOp) -> tuple[tir.PrimFuncOp, bool]:
    """Schedules a function by the first rule written for it of which no primitive is refused.

    Returns the function, which is another op where a rule was undone, and whether it is scheduled. Raises MirError where a
    primitive of a rule that is not optional is refused.
    """
    chosen = function.attrs.data.get(RULE)
    if not isinstance(chosen, StringAttr):
        return function, False
    explain = tracer(explanation(PASS))
    # Kernels in modules of their own have their key at the end of their names.
    name = re.sub(r"\.[0-9a-f]{12}$", "", function.sym_name.data)
    rules = [(call[0], _rule(function, call[1]), _numbers(call[2])) for call in _CALL.finditer(chosen.data)]
    text = function.attrs.data.get(RULE_TEXT)
    declared = _read(text.data) if isinstance(text, StringAttr) else ()
    left = {key: value for key, value in function.attrs.data.items() if key not in (RULE, RULE_TEXT)}
    function.properties["attrs"] = DictionaryAttr(left)
    for shown, rule, given in rules:
        spare, length = function.clone(), len(sch.trace)
        token = CURRENT_RULE.set(f"rule {rule.sym_name.data}")
        try:
            with declaring(declared):
                run_script(rule.script, sch, given)
        except MirError as error:
            first, *more = error.diagnostics
            said = first.message.replace(function.sym_name.data, name)
            stops = f"the schedule rule '{shown}' stops at function '{name}': {said}"
            if rule.optional is None:
                note = "'optional rule for …' has the next rules schedule what a primitive refuses"
                raise MirError([replace(first, message=stops).with_note(note), *more]) from None
            if explain is not None:
                explain(first.location, stops, *((note.message, note.location) for note in first.notes))
            function = start_again(sch, function, spare, length)
            continue
        finally:
            CURRENT_RULE.reset(token)
        if explain is not None:
            replace(explain, topic=PASS)(rule.location, f"the schedule rule '{shown}' schedules function '{name}'")
        function.properties["attrs"] = DictionaryAttr({**left, SCHEDULED: IntegerAttr(1, I1)})
        return function, True
    return function, False


def _numbers(text: str) -> dict[str, int]:
    """Returns the numbers of a rule's text: `rows=4, columns=8`."""
    return {key: int(value) for key, _, value in (part.partition("=") for part in text.split(", ") if part)}


def _rule(function: tir.PrimFuncOp, name: str) -> RuleOp:
    """Returns a rule by its name: one of the module, or of the function's own text, or one that is loaded."""
    module = function.parent_op()
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    rules: list[Operation] = [] if module is None else list(module.body.block.ops)
    text = function.attrs.data.get(RULE_TEXT)
    if isinstance(text, StringAttr):
        rules += _read(text.data)
    rules += elsewhere()
    if (loaded := find("schedule.rule", name)) is not None:
        rules.append(loaded.value)  # type: ignore[arg-type]
    for rule in rules:
        if isinstance(rule, RuleOp) and rule.sym_name.data == name:
            return rule
    raise error_at(
        function,
        f"function '{function.sym_name.data}' is to be scheduled by the rule '{name}', which is not there",
        f'the module needs its text (rule for … @T.schedule def {name}(sch): …), or the attribute "{RULE}" must go',
    )


def _read(text: str) -> Sequence[Operation]:
    found = _TEXTS.get(text)
    if found is None:
        from ...parser import parse_mir

        found = _TEXTS[text] = list(parse_mir(text, "schedule rule").ops)
    return found


def _intrinsic(half: tir.PrimFuncOp) -> str:
    name = half.attrs.data[NAME]
    return name.data if isinstance(name, StringAttr) else ""


def embed_rules(
    function: te.FuncOp | tir.PrimFuncOp, rules: Mapping[str, RuleOp], intrinsics: Sequence[tir.PrimFuncOp]
) -> None:
    """Puts the text of the rules that a function names into it, and of the intrinsics that they name."""
    chosen = function.attrs.data.get(RULE)
    if not isinstance(chosen, StringAttr):
        return
    from ...parser import print_mir

    named: list[Operation] = [rules[call[1]] for call in _CALL.finditer(chosen.data) if call[1] in rules]
    text = print_mir(ModuleOp([op.clone() for op in named]))
    used = [half for half in intrinsics if quoted(_intrinsic(half)) in text]
    if used:
        text = print_mir(ModuleOp([op.clone() for op in (*used, *named)]))
    _TEXTS[text] = [*used, *named]
    function.properties["attrs"] = DictionaryAttr({**function.attrs.data, RULE_TEXT: StringAttr(text)})
