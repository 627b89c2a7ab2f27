"""`mirstack.topi`: every operator as a function of TE tensors, `topi.nn.dense(x, w)`; arguments as in `mirstack.relay`.

An operator's TE compute stands in its entry of the operator table, beside its type relation; this module only calls it.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, cast

from ..dialects.relay.ir import FuncOp
from ..dialects.te.tensor import Tensor
from ..lowering.relay.te_kernel import te_results, type_of_tensor
from ..support.deep import in_deep_stack
from .ir.module import IRModule
from .ir.named_passes import make_pass
from .relay.expr import Function, RelayExpr, TupleWrapper, Var
from .relay.op import find
from .relay.op import names as operator_names
from .relay.ty import from_attribute


class _Operators(ModuleType):
    """The functions of the operators whose names begin with a prefix."""

    def __init__(self, prefix: str):
        super().__init__(f"mirstack.topi.{prefix.rstrip('.')}", f"The operators `{prefix}…` on TE tensors.")
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        found = None if name.startswith("_") else _function(f"{self._prefix}{name}")
        if found is None:
            raise AttributeError(f"topi has no operator '{self._prefix}{name}'")
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return operator_names(self._prefix)


def _function(name: str) -> Any:
    made = find(name)
    if made is None:
        return None
    if isinstance(made, ModuleType):
        return _Operators(f"{name}.")

    def function(*args: Any, **kwargs: Any) -> Any:
        tensors: list[Tensor] = []
        variables: list[Var] = []

        def variable(value: Any) -> Any:
            if isinstance(value, Tensor):
                if value not in tensors:
                    tensors.append(value)
                    variables.append(Var(f"x{len(variables)}", from_attribute(type_of_tensor(value))))
                return variables[tensors.index(value)]
            if isinstance(value, list | tuple):
                items = [variable(item) for item in cast("list[Any]", value)]
                return tuple(items) if isinstance(value, tuple) else items
            return value

        made_of = made(*(variable(a) for a in args), **{key: variable(a) for key, a in kwargs.items()})
        expression: RelayExpr = made_of.tuple_value if isinstance(made_of, TupleWrapper) else made_of
        results = in_deep_stack(lambda: te_results(_typed(variables, expression), tensors))
        return results[0] if len(results) == 1 else results

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = f"`{name}` of TE tensors: a tensor, or a list of several.\n\n{made.__doc__ or ''}"
    signature = getattr(made, "__signature__", None)
    if signature is not None:
        function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _typed(params: list[Var], body: RelayExpr) -> FuncOp:
    """The function as IR whose types are known. Raises MirError where the tensors do not fit the operator."""
    module = make_pass("InferType")(IRModule({"main": Function(params, body)}))
    function = module.op.body.block.first_op
    assert isinstance(function, FuncOp)
    return function


def __getattr__(name: str) -> Any:
    found = None if name.startswith("__") else _function(name)
    if found is None:
        raise AttributeError(f"module 'mirstack.topi' has no attribute '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return operator_names("")
