"""Makes the functions of `mirstack.topi` from the operators of Relay.

Arguments are as in TVM's TOPI, or as in `mirstack.relay` if TOPI has no function of an operator's name; `functions` has
the differences. An operator's TE compute is part of its entry in the operator table; this module only calls it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import Signature, signature
from types import ModuleType
from typing import Any, cast

from ...dialects.relay.ir import FuncOp
from ...dialects.relay.operator import OpPattern, get_operator
from ...dialects.relay.operators.common.te_computes import type_of_tensor
from ...dialects.te.tensor import Tensor, compute
from ...dialects.tir import node
from ...dialects.tir.node import Const, Expr
from ...lowering.relay.kernels.te_kernel import te_results
from ...support.deep_stack import in_deep_stack
from ...support.text import did_you_mean
from ..ir.module import IRModule
from ..ir.named_passes import make_pass
from ..relay.expr import Function, RelayExpr, TupleWrapper, Var, const
from ..relay.op import find
from ..relay.op import names as operator_names
from ..relay.op.make import make_function
from ..relay.ty import from_attribute
from .computes import COMPUTES
from .functions import COMPOSITES, SIGNATURES

TAGS = {
    OpPattern.ELEMWISE: "elemwise", OpPattern.BROADCAST: "broadcast", OpPattern.INJECTIVE: "injective",
    OpPattern.COMM_REDUCE: "comm_reduce",
}  # fmt: skip
"""The tags of computes, by the way in which their operators fuse."""

SCALARS: dict[str, Callable[[Any, Any], Expr]] = {
    "add": node.add, "bitwise_and": node.bitwise_and, "bitwise_or": node.bitwise_or, "bitwise_xor": node.bitwise_xor,
    "divide": node.divide, "equal": node.equal, "floor_divide": node.floordiv, "floor_mod": node.floormod,
    "greater": node.greater, "greater_equal": node.greater_equal, "left_shift": node.left_shift, "less": node.less,
    "less_equal": node.less_equal, "logical_and": node.logical_and, "logical_or": node.logical_or, "maximum": node.maximum,
    "minimum": node.minimum, "mod": node.truncmod, "multiply": node.multiply, "not_equal": node.not_equal,
    "right_shift": node.right_shift, "subtract": node.subtract,
}  # fmt: skip
"""What the operators are on two scalars."""


class Operators(ModuleType):
    """The functions of the operators whose names begin with a prefix."""

    def __init__(self, prefix: str):
        super().__init__(f"mirstack.topi.{prefix.rstrip('.')}", f"The operators `{prefix}…` on TE tensors.")
        self._prefix = prefix
        self.__path__ = []  # a package: `import mirstack.relay.qnn.op`

    def __getattr__(self, name: str) -> Any:
        found = None if name.startswith("_") else topi_function(f"{self._prefix}{name}")
        if found is None:
            near = did_you_mean(name, dir(self))
            raise AttributeError(f"topi has no operator '{self._prefix}{name}'{near}")
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return operator_names_of(self._prefix)


def operator_names_of(prefix: str) -> list[str]:
    """Returns the names of the functions after a prefix such as `nn.`."""
    own = {
        name[len(prefix) :].partition(".")[0]
        for name in (*SIGNATURES, *COMPOSITES, *COMPUTES)
        if name.startswith(prefix)
    }
    return sorted(own.union(operator_names(prefix)))


def _maker(name: str) -> Any:
    """Returns the function of TOPI's `name` on Relay expressions, or the module of a prefix, or None."""
    if name in COMPOSITES:
        return COMPOSITES[name]
    if name not in SIGNATURES:
        return find(name)
    head, _, text = SIGNATURES[name].rpartition(": ")
    operator = get_operator(head or name)
    assert operator is not None
    return make_function(operator, text)


def topi_function(name: str) -> Any:
    """Returns the function of TE tensors of that name, the module of a prefix, or None."""
    if name in COMPUTES:
        return COMPUTES[name]
    made = _maker(name)
    if made is None:
        return None
    if isinstance(made, ModuleType):
        return Operators(f"{name}.")

    operator = get_operator(SIGNATURES.get(name, "").rpartition(": ")[0] or name)
    is_binary = operator is not None and operator.arguments == ("lhs", "rhs")
    tag = "" if operator is None or name in COMPOSITES else TAGS.get(operator.pattern, "")

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
            if is_binary and isinstance(value, int | float):
                like = next((v for v in (*args, *kwargs.values()) if isinstance(v, Tensor)), None)
                return value if like is None else const(value, like.dtype)
            if is_binary and isinstance(value, Const):
                return const(value.value, value.dtype)
            if is_binary and isinstance(value, Expr):
                return variable(compute((), lambda: value, name="T_scalar"))
            if isinstance(value, Const):
                return value.value
            return value

        if is_binary and name in SCALARS and not any(isinstance(v, Tensor) for v in (*args, *kwargs.values())):
            return SCALARS[name](*args, **{key: kwargs[key] for key in ("lhs", "rhs") if key in kwargs})
        made_of = made(*(variable(a) for a in args), **{key: variable(a) for key, a in kwargs.items()})
        expression: RelayExpr = made_of.tuple_value if isinstance(made_of, TupleWrapper) else made_of
        results = in_deep_stack(lambda: te_results(_typed(variables, expression), tensors))
        for result in results:
            if not result.op.tag and all(result.op is not tensor.op for tensor in tensors):
                result.op.tag = tag
        return results[0] if len(results) == 1 else results

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = f"`{name}` of TE tensors: a tensor, or a list of several.\n\n{made.__doc__ or ''}"
    function.__signature__ = _on_tensors(signature(made), is_binary)  # type: ignore[attr-defined]
    return function


def _on_tensors(of_relay: Signature, is_binary: bool) -> Signature:
    """Returns the signature of a function on Relay's expressions with TE's tensors in place of these."""
    operand = "Tensor | ExprLike" if is_binary else "Tensor"

    def converted(annotation: object) -> object:
        text = str(annotation).replace(" | TupleWrapper", "").replace("Sequence[RelayExpr]", "Sequence[Tensor]")
        return text.replace("RelayExpr", operand)

    results = {"Call": "Tensor", "RelayExpr": "Tensor", "TupleWrapper": "list[Tensor]"}
    return of_relay.replace(
        parameters=[p.replace(annotation=converted(p.annotation)) for p in of_relay.parameters.values()],
        return_annotation=" | ".join(results.get(each, each) for each in str(of_relay.return_annotation).split(" | ")),
    )


def _typed(params: list[Var], body: RelayExpr) -> FuncOp:
    """The function as IR whose types are known. Raises MirError where the tensors do not fit the operator."""
    module = make_pass("InferType")(IRModule({"main": Function(params, body)}))
    function = module.op.body.block.first_op
    assert isinstance(function, FuncOp)
    return function


def members(module: str, prefix: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns the `__getattr__` and `__dir__` of a module that has the functions after a prefix."""

    def attribute(name: str) -> Any:
        found = None if name.startswith("__") else topi_function(f"{prefix}{name}")
        if found is None:
            near = did_you_mean(name, [] if name.startswith("_") else operator_names_of(prefix))
            raise AttributeError(f"topi has no operator '{prefix}{name}'{near}")
        vars(sys.modules[module])[name] = found
        return found

    return attribute, lambda: operator_names_of(prefix)
