"""`reduce`: the smallest case that still fails, by leaving out and replacing what it is made of.

```text
for i in range(7):                 A[0] = T.exp(B[0])
    A[i] = T.exp(B[i]) + C[i]  →
for j in range(9): …
```

Each `Shrinker` counts the units that it can take from a case: ops, loops around a body, sizes, steps of a pipeline, lines. Units are taken
in ever smaller groups (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002), as long as what is left
fails in the same way; what is not well formed is not tried.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from xdsl.dialects.builtin import AnyFloat, IntegerType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from ..dialects import relay, tir
from ..dialects.array import numpy_dtype
from ..parser import parse_mir, print_mir
from ..support.diagnostics import MirError
from ..support.edit import erase_op
from ..support.verify import find_errors
from ..support.walk import walk_ops
from .case import Case, Failure, Verdict

Check = Callable[[Case], Verdict]


class Shrinker(Protocol):
    """One way to make a case smaller."""

    def units(self, case: Case) -> int:
        """Returns the number of units that can be removed."""
        ...

    def without(self, case: Case, first: int, last: int) -> Case | None:
        """The case without the units from `first` up to `last`; None where that is none, or the case itself."""
        ...


@dataclass
class Effort:
    """The budget of a reduction: cases that may still be tried, and the deadline."""

    tries: int = 600
    seconds: float = 120.0

    def __post_init__(self) -> None:
        self.until = time.monotonic() + self.seconds

    def spend(self) -> bool:
        """Takes one try; False where none is left."""
        self.tries -= 1
        return self.tries >= 0 and time.monotonic() < self.until


def reduce(case: Case, failure: Failure, check: Check, shrinkers: Sequence[Shrinker], effort: Effort) -> Case:
    """Returns the smallest case found that fails as `failure`."""

    def fails_once(candidate: Case) -> bool:
        return any(found.is_like(failure) for found in check(candidate).failures)

    # What reads memory that nothing wrote fails now and then.
    tries = 1 if all(fails_once(case) for _ in range(2)) else 3

    def fails(candidate: Case) -> bool:
        return any(fails_once(candidate) for _ in range(tries))

    before: object = None
    while before != (case.text, case.options) and effort.tries > 0:
        before = (case.text, case.options)
        for shrinker in shrinkers:
            case = _shrink(case, shrinker, fails, effort)
    return case


def _shrink(case: Case, shrinker: Shrinker, fails: Callable[[Case], bool], effort: Effort) -> Case:
    count = shrinker.units(case)
    size = count
    while size > 0:
        last = count
        while last > 0:
            first = max(0, last - size)
            smaller = shrinker.without(case, first, last)
            last = first
            if smaller is None:
                continue
            if not effort.spend():
                return case
            if fails(smaller):
                case = smaller
                last = min(last, shrinker.units(case))
        count = shrinker.units(case)
        size = min(size // 2, count)
    return case


def with_text(case: Case, text: str) -> Case | None:
    """Returns the case with another program and fitted inputs; None if it is the same or unreadable."""
    if text == case.text:
        return None
    from ..api.compile import compile

    with suppress(Exception):
        module = parse_mir(text)
        if find_errors(module):
            return None
        params = compile(module, "interp", entry=case.options.get("entry")).params
        return replace(
            case, text=text, inputs={p.name: _fitted(case.inputs.get(p.name), p.shape, p.dtype) for p in params}
        )
    return None


def _fitted(array: np.ndarray | None, shape: Sequence[int | str], dtype: str) -> np.ndarray:
    if array is None:
        return np.zeros([n if isinstance(n, int) else 1 for n in shape], numpy_dtype(dtype))
    wanted = tuple(n if isinstance(n, int) else given for n, given in zip(shape, array.shape, strict=True))
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(np.resize(array, wanted)).reshape(wanted).astype(numpy_dtype(dtype))


class ChangeModule:
    """The base of shrinkers that change IR: `candidates` in a module, and `apply` to one."""

    def candidates(self, module: ModuleOp) -> list[Operation]:
        """Returns the ops at which it may be applied."""
        raise NotImplementedError

    def apply(self, op: Operation) -> None:
        """Changes the module at an op; leaves it alone where that cannot be."""
        raise NotImplementedError

    def units(self, case: Case) -> int:
        """Returns the number of candidates."""
        try:
            return len(self.candidates(parse_mir(case.text)))
        except MirError:
            return 0

    def without(self, case: Case, first: int, last: int) -> Case | None:
        """Returns the program changed at several candidates, the last one first."""
        with suppress(Exception):
            module = parse_mir(case.text)
            for op in reversed(self.candidates(module)[first:last]):
                if op.parent is not None:
                    self.apply(op)
            erase_unused(module)
            return with_text(case, print_mir(module))
        return None


class DropOps(ChangeModule):
    """Removes ops; an operand, a constant or an earlier value of the same type replaces each result."""

    def candidates(self, module: ModuleOp) -> list[Operation]:
        """All ops that do not end a block."""
        return [op for op in walk_ops(module) if op is not module and not op.has_trait(IsTerminator) and not _plain(op)]

    def apply(self, op: Operation) -> None:
        """Erases the op if its results can be replaced."""
        found: list[tuple[SSAValue, SSAValue]] = []
        for result in op.results:
            if not result.first_use:
                continue
            other = _instead(op, result)
            if other is None:
                return
            found.append((result, other))
        for result, other in found:
            result.replace_all_uses_with(other)
        erase_op(op)


def _plain(op: Operation) -> bool:
    """Tells whether an op cannot be simplified: constants, and the parts of a scan."""
    scanned = any(use.operation.name == "te.scan" for result in op.results for use in result.uses)
    return isinstance(op, tir.ConstOp) or scanned or op.name == "te.placeholder"


def _instead(op: Operation, result: SSAValue) -> SSAValue | None:
    for operand in op.operands:
        if operand.type == result.type:
            return operand
    if op.name.startswith("tir."):
        with suppress(Exception):
            assert isinstance(result.type, IntegerType | AnyFloat)
            is_integer = isinstance(result.type, IntegerType)
            number = tir.ConstOp.int(1, result.type) if is_integer else tir.ConstOp.float(1.0, result.type)
            assert op.parent is not None
            op.parent.insert_op_before(number, op)
            return number.result
    return next((value for value in _earlier(op) if value.type == result.type), None)


def _earlier(op: Operation) -> Iterator[SSAValue]:
    """Yields the values that an op may use, the nearest first."""
    place: Operation | None = op
    while place is not None and isinstance(place.parent, Block):
        before = place.prev_op
        while before is not None:
            yield from before.results
            before = before.prev_op
        yield from place.parent.args
        place = place.parent.parent_op()


class Unwrap(ChangeModule):
    """Puts the body of a loop, a branch or a block in its place."""

    def candidates(self, module: ModuleOp) -> list[Operation]:
        """Ops with a body that is not a function."""
        return [
            op
            for op in walk_ops(module)
            if isinstance(op, tir.ForOp | tir.IfOp | tir.WhileOp | tir.IfThenElseOp | relay.IfOp | tir.ScopeOp)
        ]

    def apply(self, op: Operation) -> None:
        """Moves the first region's ops before the op, which goes."""
        block = op.regions[-1].blocks.first if isinstance(op, tir.WhileOp) else op.regions[0].blocks.first
        assert block is not None and op.parent is not None
        if isinstance(op, tir.ForOp):
            block.args[0].replace_all_uses_with(op.min)
        last = block.last_op
        if op.results:
            assert last is not None
            for result, value in zip(op.results, last.operands, strict=True):
                result.replace_all_uses_with(value)
        if last is not None and last.has_trait(IsTerminator):
            erase_op(last)
        for inner in list(block.ops):
            inner.detach()
            op.parent.insert_op_before(inner, op)
        erase_op(op)


def erase_unused(module: ModuleOp) -> None:
    """Erases expressions whose value nobody uses, and unused constants and operators of Relay."""
    for op in reversed([op for op in walk_ops(module) if op is not module]):
        if not op.results or any(result.first_use for result in op.results) or op.parent is None:
            continue
        if op.name.startswith(("relay.", "tir.")) and not isinstance(op, relay.FuncOp | tir.CallOp | tir.BufferOp):
            erase_op(op)


def _returning(case: Case, module: ModuleOp, body: Block, value: SSAValue) -> Case | None:
    """Returns the case with another result of a Relay function, whose type is inferred again."""
    function, last = body.parent_op(), body.last_op
    assert isinstance(function, relay.FuncOp) and last is not None
    last.operands = [value]
    function.ret_type = relay.FuncOp("f", [], []).ret_type
    erase_unused(module)
    return with_text(case, print_mir(module))


class ReturnEarlier(ChangeModule):
    """Lets the last function return an earlier value."""

    def candidates(self, module: ModuleOp) -> list[Operation]:
        """Ops of the body of `@main` whose values can be results."""
        main = next((op for op in module.ops if isinstance(op, relay.FuncOp) and op.sym_name.data == "main"), None)
        return [] if main is None else [op for op in main.body.block.ops if op.results]

    def without(self, case: Case, first: int, last: int) -> Case | None:
        """Returns the value before the ops from `first` on, and removes these."""
        with suppress(Exception):
            module = parse_mir(case.text)
            ops = self.candidates(module)
            block = ops[0].parent
            assert block is not None and block.last_op is not None
            returned = block.last_op
            value = ops[first - 1].results[0] if first > 0 and last == len(ops) else ops[last - 1].results[0]
            if value is returned.operands[0]:
                return None
            return _returning(case, module, block, value)
        return None


class ReturnOneField(ChangeModule):
    """Lets the function return one field of the tuple that it returns."""

    def candidates(self, module: ModuleOp) -> list[Operation]:
        """Returns the tuple's fields, once the tuple for each."""
        found: list[Operation] = []
        for op in module.ops:
            if isinstance(op, relay.FuncOp) and (last := op.body.block.last_op) is not None:
                value = last.operands[0].owner
                if isinstance(value, relay.TupleOp):
                    found += [value] * len(value.operands)
        return found

    def without(self, case: Case, first: int, last: int) -> Case | None:
        """Returns the program with one field; the units are the others."""
        if last - first != 1:
            return None
        with suppress(Exception):
            module = parse_mir(case.text)
            fields = self.candidates(module)
            tuple_op = fields[first]
            place = first - fields.index(tuple_op)
            block = tuple_op.parent
            assert block is not None
            return _returning(case, module, block, tuple_op.operands[place])
        return None


class ValuesToInputs:
    """Makes values that `@main` computes inputs of it, with what they are on the inputs."""

    def units(self, case: Case) -> int:
        """Returns the number of values that can be inputs."""
        try:
            return len(_tensors(parse_mir(case.text)))
        except MirError:
            return 0

    def without(self, case: Case, first: int, last: int) -> Case | None:
        """Returns the program to which the values from `first` to `last` are given."""
        from ..api.compile import compile

        with suppress(Exception):
            module = parse_mir(case.text)
            ops = _tensors(module)[first:last]
            # What they are: a program that returns them.
            probe = parse_mir(case.text)
            main = _main(probe)
            probed = _tensors(probe)[first:last]
            returned = main.body.block.last_op
            assert returned is not None
            main.body.block.insert_op_before(fields := relay.TupleOp([op.results[0] for op in probed]), returned)
            returned.operands = [fields.results[0]]
            main.ret_type = relay.FuncOp("f", [], []).ret_type
            with np.errstate(all="ignore"):
                values = list(
                    compile(parse_mir(print_mir(probe)), "interp", entry="main").run(dict(case.inputs)).values()
                )
            function = _main(module)
            inputs = dict(case.inputs)
            names = [name.data for name in function.param_names.data]
            for op, value in zip(ops, values, strict=True):
                name = next(f"v{n}" for n in range(1000) if f"v{n}" not in names)
                names.append(name)
                argument = function.body.block.insert_arg(op.results[0].type, len(function.body.block.args))
                op.results[0].replace_all_uses_with(argument)
                erase_op(op)
                inputs[name] = value
            function.param_names = relay.FuncOp("f", names, []).param_names
            erase_unused(module)
            return with_text(replace(case, inputs=inputs), print_mir(module))
        return None


def _main(module: ModuleOp) -> relay.FuncOp:
    return next(op for op in module.ops if isinstance(op, relay.FuncOp) and op.sym_name.data == "main")


def _tensors(module: ModuleOp) -> list[Operation]:
    """Returns the ops of `@main` with one used tensor as result; none in a program of another level."""
    from xdsl.dialects.builtin import TensorType

    if not any(isinstance(op, relay.FuncOp) and op.sym_name.data == "main" for op in module.ops):
        return []
    return [
        op
        for op in _main(module).body.block.ops
        if len(op.results) == 1 and isinstance(op.results[0].type, TensorType) and op.results[0].first_use
    ]


class DropParams(ChangeModule):
    """Leaves out parameters that nothing uses."""

    def units(self, case: Case) -> int:
        """Returns the number of changes to try."""
        return 1

    def without(self, case: Case, first: int, last: int) -> Case | None:
        """Returns the program without them."""
        with suppress(Exception):
            module = parse_mir(case.text)
            for op in module.ops:
                if not isinstance(op, relay.FuncOp | tir.PrimFuncOp) or (
                    isinstance(op, relay.FuncOp) and op.sym_name.data != "main"
                ):
                    continue
                block = op.body.block
                names = [name.data for name in op.param_names.data]
                for place in reversed(range(len(block.args))):
                    if not block.args[place].first_use and len(block.args) > 1:
                        block.erase_arg(block.args[place])
                        del names[place]
                op.param_names = relay.FuncOp("f", names, []).param_names
            return with_text(case, print_mir(module))
        return None


_NUMBER = re.compile(r"(?<![\w.%\"-])(\d+)(?![\w.])")


class ShrinkNumbers:
    """Replaces each occurrence of a number by a smaller one: sizes of buffers, loops and tensors."""

    def _changes(self, case: Case) -> list[tuple[str, str]]:
        numbers = sorted({int(n) for n in _NUMBER.findall(case.text) if len(n) < 10}, reverse=True)
        return [(str(n), str(m)) for n in numbers if n > 1 for m in sorted({n - 1, n // 2, 1}, reverse=True)]

    def units(self, case: Case) -> int:
        """Returns the number of changes to try."""
        return len(self._changes(case))

    def without(self, case: Case, first: int, last: int) -> Case | None:
        """Returns the text with one number changed."""
        changes = self._changes(case)
        if last - first != 1 or first >= len(changes):
            return None
        old, new = changes[first]
        return with_text(case, _NUMBER.sub(lambda match: new if match[0] == old else match[0], case.text))


class DropItems:
    """Leaves out items of a list among the options."""

    def __init__(self, option: str, least: int = 1):
        self.option, self.least = option, least

    def units(self, case: Case) -> int:
        """Returns the length of the list."""
        return len(case.options.get(self.option, ()))

    def without(self, case: Case, first: int, last: int) -> Case | None:
        """Returns the case with a shorter list."""
        items = list(case.options[self.option])
        del items[first:last]
        return case.with_options(**{self.option: items}) if len(items) >= self.least else None


class PlainInputs:
    """Sets inputs to 0, otherwise to 1."""

    def units(self, case: Case) -> int:
        """Returns the number of changes to try."""
        return 2 * len(case.inputs)

    def without(self, case: Case, first: int, last: int) -> Case | None:
        """Returns the case with one input plain."""
        if last - first != 1:
            return None
        name = list(case.inputs)[first // 2]
        array = case.inputs[name]
        plain = np.full_like(array, first % 2)
        if np.unique(array.astype(np.float64)).size <= 1:
            return None
        return replace(case, inputs={**case.inputs, name: plain})


_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")


class DropText:
    """Leaves out parts of a text: lines, tokens or characters."""

    def __init__(self, pattern: str):
        self.pattern = re.compile(pattern, re.DOTALL)

    def units(self, case: Case) -> int:
        """Returns the number of parts."""
        return len(self.pattern.findall(case.text))

    def without(self, case: Case, first: int, last: int) -> Case | None:
        """Returns the text without some."""
        parts = self.pattern.findall(case.text)
        del parts[first:last]
        return replace(case, text="".join(parts))


ON_RELAY: tuple[Shrinker, ...] = (
    DropItems("ways"), ReturnOneField(), ReturnEarlier(), ValuesToInputs(), DropOps(), Unwrap(), DropParams(), ShrinkNumbers(), PlainInputs(),
)  # fmt: skip
ON_TIR: tuple[Shrinker, ...] = (DropItems("ways"), DropOps(), Unwrap(), DropParams(), ShrinkNumbers(), PlainInputs())
ON_TEXT: tuple[Shrinker, ...] = (DropText(r"[^\n]*\n|[^\n]+"), DropText(r"\w+|\s+|[^\w\s]"), DropText(r"."))
