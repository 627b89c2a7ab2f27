"""`Schedule`: interactive rewriting of a module's prim_funcs, as TVM's `tir.Schedule`."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from inspect import Signature as PythonSignature
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ....dialects import tir
from ....dialects.schedule import Signature, SignatureError, signature, signatures
from ....support.deep_stack import in_deep_stack
from ....support.garbage import no_collection
from ....support.walk import walk_ops
from ..analysis.structure import function_of, scope_of
from ..primitives.query import get_block
from .errors import ScheduleError, refuse
from .index_maps import LambdaMap, RecordedMap
from .instruction import Instruction
from .primitive import Primitive, find, names
from .random_variables import BlockRV, ExprRV, Handle, LoopRV, PlaceRV
from .state import State
from .trace import Trace, handles_in, map_argument

if TYPE_CHECKING:
    from .methods import Primitives  # pyright: ignore[reportMissingModuleSource]
else:
    Primitives = object


class Schedule(Primitives):
    """Edits the prim_funcs of `mod` in place by primitives, its methods: `sch.split(loop, [None, 4])`.

    Every primitive that was applied is kept in `trace`, with its arguments. A primitive that is refused raises
    ScheduleError and leaves the module as it was. `help(sch.split)` shows what a primitive does, `dir(sch)` lists them.
    `seed` is that of what is drawn (`sample_perfect_tile`); None draws otherwise each time.
    """

    def __init__(self, mod: ModuleOp | tir.PrimFuncOp, *, seed: int | None = None):
        if isinstance(mod, tir.PrimFuncOp):
            parent = mod.parent_op()
            mod = parent if isinstance(parent, ModuleOp) else ModuleOp([mod])
        self.module = mod
        self.state = State(mod, random.Random(seed))
        self.trace = Trace()
        self._traced: set[Handle] = set()
        self.before_change: list[Callable[[], None]] = []
        """Called before a primitive that changes the program: what was found out of it may then be true no longer."""

    @property
    def mod(self) -> Any:
        """Returns the module that is edited."""
        return self.module

    def resolve(self, handle: Handle | int) -> Any:
        """Returns the op of a handle, or the number or place that was drawn."""
        if isinstance(handle, int):
            return handle
        if isinstance(handle, PlaceRV):
            return handle.place
        return handle.value if isinstance(handle, ExprRV) else self.state.op(handle)

    def handle(self, block: tir.BlockOp) -> BlockRV:
        """Returns a handle of a block found by inspection. The trace finds the block by its name or position."""
        handle = self.state.handle(block)
        assert isinstance(handle, BlockRV)
        return handle

    def copy(self) -> Schedule:
        """Copies the schedule and its module; handles of this schedule refer to the same places of the copy."""
        with no_collection():
            module = in_deep_stack(self.module.clone)
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new.module = module
        places = dict(zip(walk_ops(self.module), walk_ops(module), strict=True))
        new.state = self.state.copy_to(module, places)
        new.trace = Trace(self.trace.insts, self.trace.decisions)
        new._traced = set(self._traced)
        new.before_change = []
        return new

    def fork_seed(self) -> int:
        """Returns a seed for another schedule, drawn from this one's."""
        return self.state.random.getrandbits(31)

    def seed(self, seed: int | None) -> None:
        """Draws from this seed from now on."""
        self.state.random = random.Random(seed)

    def show(self, style: str | None = None, black_format: bool | None = None) -> None:
        """Prints the module and the trace, without colors: `style` and `black_format` are TVM's."""
        from ....parser import print_mir

        print(print_mir(self.module))
        print(self.trace)

    @staticmethod
    def help(name: str) -> str:
        """Returns the description of a primitive, with the program before and after."""
        known = find(name)
        if known is None:
            raise refuse(None, f"there is no schedule primitive '{name}'", f"there are {', '.join(names())}")
        return f"{name}{known.signature}\n\n{known.doc}"

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *names()})

    def __getattr__(self, name: str) -> Callable[..., Any]:
        known = None if name.startswith("_") else find(name)
        if known is None:
            raise AttributeError(f"there is no schedule primitive '{name}'; there are {', '.join(names())}")

        def apply(*args: Any, **kwargs: Any) -> Any:
            return self.apply(name, args, kwargs)

        apply.__name__ = apply.__qualname__ = name
        apply.__doc__ = known.doc
        apply.__signature__ = _shown(known)  # type: ignore[attr-defined]
        return apply

    def apply(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Applies a primitive, and keeps it in the trace. Raises ScheduleError where it is refused."""
        known, shape = find(name), signature(name)
        if known is None or shape is None:
            raise refuse(None, f"there is no schedule primitive '{name}'", f"there are {', '.join(names())}")
        try:
            plain = map_argument(list(args), _plain)
            bound = shape.bind(plain, map_argument(dict(kwargs), _plain))
            shape.check(bound)
        except SignatureError as error:
            raise refuse(None, error.message, error.note) from None
        self._trace_handles(bound)
        positional, keywords = self._python_arguments(shape, bound)
        self.state.decision = None
        if not known.only_looks:
            for changes in self.before_change:
                changes()
        result = known.apply(self.state, *positional, **keywords)
        return self._record(known, bound, result)

    def _python_arguments(self, shape: Signature, bound: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Returns the arguments for the primitive's function: ops for handles and block names, plain numbers."""
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for name, value in bound.items():
            parameter = shape.by_name[name]
            kinds = [kind.word for kind in parameter.kinds]
            if parameter.variadic:
                positional += [map_argument(v, self._op) for v in value]
            elif isinstance(value, PlaceRV) and shape.name in ("compute_at", "reverse_compute_at"):
                keywords[name] = value
            elif "block" in kinds and isinstance(value, str):
                keywords[name] = get_block(self.state, value)
            elif "lambda" in kinds and callable(value):
                bound[name] = recorded = RecordedMap(value)
                keywords[name] = recorded
            else:
                keywords[name] = map_argument(value, self._op)
        return positional, keywords

    def _op(self, argument: Any) -> Any:
        """Returns the op or value of a handle, other arguments as they are."""
        if isinstance(argument, ExprRV):
            return argument.value
        if isinstance(argument, PlaceRV):
            raise refuse(
                None,
                f"the handle {argument!r} stands for the place '{argument.place}' that sample_compute_location drew, which is not a loop",
                "only compute_at and reverse_compute_at take it",
            )
        return self.state.op(argument) if isinstance(argument, Handle) else argument

    def _trace_handles(self, bound: Mapping[str, Any]) -> None:
        """Records in the trace where handles of blocks come from that no primitive returned."""
        for handle in handles_in(list(bound.values())):
            if isinstance(handle, BlockRV) and handle not in self._traced:
                self._trace_block(handle)

    def _trace_block(self, handle: BlockRV) -> None:
        """Records how to get a block: by its name, or as one of its scope where several have that name."""
        op = self.state.op(handle)
        function = function_of(op)
        name = op.block_name.data if isinstance(op, tir.BlockOp) else "root"
        if op is function or len(self.state.named(function).get(name, ())) == 1:
            own = self.state.focus == function.sym_name.data
            self.apply("get_block", (name,), {} if own else {"func_name": function.sym_name.data})
            return
        scope = self.state.handle(scope_of(op))
        self.apply("get_child_blocks", (scope,), {})

    def _record(self, known: Primitive, bound: Mapping[str, Any], result: Any) -> Any:
        """Returns the result as handles, after the call is in the trace."""
        decision = self.state.decision
        if decision is not None:
            bound = {**bound, "decision": decision}
        several = isinstance(result, list)
        ops = cast("list[Any]", result) if several else [] if result is None else [result]
        given = [self._handle(op) for op in ops]
        function = function_of(ops[0]).sym_name.data if known.name == "get_block" else None
        inst = Instruction.applied(known.name, bound, given, list(map(_label, ops)), function)
        self.trace.append(inst, decision)
        self._traced.update(item for item in given if isinstance(item, Handle))
        return given if several else given[0] if given else None

    def _handle(self, result: Any) -> Any:
        if isinstance(result, Operation):
            return self.state.handle(result)
        if isinstance(result, int) and not isinstance(result, bool):
            return ExprRV(result)
        return result


@lru_cache(maxsize=128)
def _shown(known: Primitive) -> PythonSignature:
    """Returns the signature that `help` shows: kinds of arguments instead of the types of ops."""
    kinds = signatures()[known.name]
    shown = [p.replace(annotation=kinds.by_name[p.name].kind) for p in known.signature.parameters.values()]
    return known.signature.replace(parameters=shown, return_annotation=kinds.result)


def _plain(value: Any) -> Any:
    """Converts a number of another type (numpy's, an immediate) to Python's."""
    if isinstance(value, bool | int | float | str | Handle | LambdaMap) or value is None:
        return value
    if hasattr(value, "__index__"):
        return int(value)
    return value


def _label(result: Any) -> str:
    """Returns the name of a result in the program, for readable traces."""
    match result:
        case tir.ForOp():
            return result.var_name.data
        case tir.BlockOp():
            return f"block_{result.block_name.data}"
        case tir.PrimFuncOp():
            return "root"
        case _:
            return ""


__all__ = ["BlockRV", "ExprRV", "LoopRV", "Schedule", "ScheduleError"]
