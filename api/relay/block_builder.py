"""`relay.BlockBuilder`: builds a module; calls of TE functions become calls of new prim_funcs in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, TensorType, TupleType
from xdsl.ir import Attribute

from ...dialects.relay.operators.common.te_computes import type_of_tensor
from ...dialects.te import builder as te
from ...dialects.te.tensor import Tensor
from ...dialects.tir.structural_key import structural_key
from ...dialects.tir.types import type_to_dtype
from ...lowering.te.create_prim_func import create_prim_func
from ...support.deep_stack import in_deep_stack
from ...support.diagnostics import Diagnostic, MirError
from ..ir.module import IRModule
from ..ir.named_passes import make_pass
from ..ir.node import Node
from ..ir.op import CALL_TIR, Op
from ..ir.prim_func import PrimFunc
from .analysis import free_vars
from .expr import Call, Function, GlobalVar, RelayExpr, Tuple, TupleGetItem, Var
from .graph import parts, rebuild
from .ty import from_attribute, to_attribute

_LETTERS = 26


class BlockBuilder:
    """Collects functions by name into a module, as the class of that name in TVM's Relax does, for Relay.

    `call_te(topi.nn.dense, x, w)` is an expression that calls a new prim_func of the module, which computes what the TE
    function makes of placeholders of the arguments' types.
    """

    def __init__(self, mod: IRModule | None = None):
        self._module = IRModule() if mod is None else IRModule.of_op(mod.copy_op())
        self._prim_funcs = {
            structural_key(function.op): variable
            for variable, function in self._module.functions.items()
            if isinstance(function, PrimFunc)
        }

    def __repr__(self) -> str:
        return f"BlockBuilder({self._module!r})"

    def get(self) -> IRModule:
        """The module so far."""
        return IRModule.of_op(self._module.copy_op())

    def add_func(self, func: Function | PrimFunc, func_name: str) -> GlobalVar:
        """Adds a function as `func_name`, with a number after it if that name is taken."""
        name, number = func_name, 0
        while name in self._module:
            number += 1
            name = f"{func_name}{number}"
        variable = GlobalVar(name)
        self._module.update_func(variable, func)
        return variable

    def update_func(self, gv: GlobalVar | str, updated_func: Function | PrimFunc) -> None:
        """Puts a function under a name, instead of what was there."""
        self._module.update_func(gv, updated_func)

    def call_te(
        self, func: Callable[..., Any], *args: Any, primfunc_name_hint: str | None = None, **kwargs: Any
    ) -> RelayExpr:
        """Returns a call of a prim_func made of `func`; its Relay arguments become TE placeholders.

        Arguments are Relay expressions, alone or in lists. `func` returns a tensor, or a list of them: the call is then a tuple. An
        equal prim_func is used again. Raises MirError for an argument of unknown type.
        """
        given: list[RelayExpr] = []
        inputs: list[Tensor] = []

        def placeholder(value: Any) -> Any:
            if isinstance(value, RelayExpr) and not isinstance(value, Tuple):
                if value not in given:
                    given.append(value)
                    inputs.append(self._placeholder(value, len(inputs)))
                return inputs[given.index(value)]
            if isinstance(value, list | tuple | Tuple):
                items: Sequence[Any] = value.fields if isinstance(value, Tuple) else cast("Sequence[Any]", value)
                return [placeholder(item) for item in items]
            return value

        made = func(*(placeholder(a) for a in args), **{key: placeholder(a) for key, a in kwargs.items()})
        outputs: list[Tensor] = list(cast("Sequence[Tensor]", made)) if isinstance(made, list | tuple) else [made]
        for output in outputs:
            if not isinstance(cast("object", output), Tensor):
                raise MirError(Diagnostic(f"call_te: {func!r} gave {output!r}, which is not a TE tensor"))
        fresh = [te.compute(t.shape, t, name=t.name) if t in inputs else t for t in outputs]
        name = primfunc_name_hint or getattr(func, "__name__", "te_func")
        called = in_deep_stack(lambda: create_prim_func(te.func(name, [*inputs, *fresh])))
        key = in_deep_stack(lambda: structural_key(called))
        variable = self._prim_funcs.get(key)
        if variable is None:
            variable = self._prim_funcs[key] = self.add_func(PrimFunc(called), name)
        call = Call(Op.get(CALL_TIR), [variable, *given])
        types = [type_of_tensor(output) for output in fresh]
        call.known_type = types[0] if len(types) == 1 else TupleType(ArrayAttr(types))
        return call

    def _placeholder(self, value: RelayExpr, number: int) -> Tensor:
        type = self.type_of(value)
        if not isinstance(type, TensorType):
            raise MirError(Diagnostic(f"call_te: argument {number} is not a tensor", value.location))
        name = value.name_hint if isinstance(value, Var) else chr(ord("A") + number % _LETTERS)
        shape = [
            te.var(f"{name}_{axis}") if extent == DYNAMIC_INDEX else extent
            for axis, extent in enumerate(type.get_shape())
        ]
        return te.placeholder(tuple(shape), type_to_dtype(type.element_type), name)

    def type_of(self, value: RelayExpr) -> Attribute:
        """The type of an expression, inferred where it is not known yet. Raises MirError where it cannot be."""
        if value.known_type is not None:
            return value.known_type
        if isinstance(value, Var) and value.type_annotation is not None:
            return to_attribute(value.type_annotation)
        body = _cut_at_types(value)
        module = IRModule.of_op(self._module.copy_op())
        name = "type_of"
        while name in module:
            name += "_"
        module.update_func(name, Function(free_vars(body), body))
        inferred = make_pass("InferType")(module).relay_function(name).body.known_type
        assert inferred is not None
        return inferred


def _cut_at_types(root: RelayExpr) -> RelayExpr:
    """Replaces typed subexpressions by variables, so that each call of a chain does not walk all of it."""
    new: dict[Node, Node] = {}
    pending: list[Node] = [root]
    while pending:
        node = pending[-1]
        known = node.known_type if isinstance(node, Call | TupleGetItem) else None
        if node in new:
            pending.pop()
        elif known is not None:
            new[node] = Var("typed", from_attribute(known))
        elif missing := [part for part in parts(node) if part not in new]:
            pending += missing
        else:
            new[node] = rebuild(node, lambda part: new.get(part, part)) if isinstance(node, RelayExpr) else node
    found = new[root]
    assert isinstance(found, RelayExpr)
    return found


def call_tir(gvar: GlobalVar, args: RelayExpr | Sequence[RelayExpr]) -> Call:
    """A call of a prim_func of the module: its first parameters are `args`, the others the results."""
    given = [args] if isinstance(args, RelayExpr) and not isinstance(args, Tuple) else args
    fields: Sequence[RelayExpr] = given.fields if isinstance(given, Tuple) else cast("Sequence[RelayExpr]", given)
    return Call(Op.get(CALL_TIR), [gvar, *fields])


__all__ = ["BlockBuilder", "call_tir"]
