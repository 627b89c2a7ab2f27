"""`mirstack.relay.op`: a function for each operator by its name in Relay text, `op.nn.dense`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any, ClassVar

from ....dialects.relay.operator import OpPattern, all_operators, get_operator, own_namespaces
from ....passes.extensions.packages import load_packages
from ....support.text import did_you_mean
from ...ir.op import Op, get
from ...ir.op_attrs import register_op_attr
from ...no_attribute import no_attribute

__all__ = ["Op", "OpPattern", "find", "get", "names", "register_alter_op_layout", "register_legalize"]

# Where TVM's function is called otherwise than the operator.
_ALIASES = {
    "batch_norm": "nn.batch_norm",
    "multinomial": "random.multinomial",
    "nn.contrib_conv2d_nchwc": "nn.contrib_conv2d_NCHWc",
    "nn.contrib_depthwise_conv2d_nchwc": "nn.contrib_depthwise_conv2d_NCHWc",
}


class OperatorNamespace(ModuleType):
    """`relay.nn`, `relay.image`, …: the operators whose names begin with a word."""

    def __init__(self, prefix: str):
        super().__init__(f"mirstack.relay.{prefix.rstrip('.')}", f"The operators `{prefix}…`, as functions.")
        self._prefix = prefix
        self.__path__ = []  # a package: `import mirstack.relay.qnn.op`

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = find(f"{self._prefix}{name}")
        if found is None:
            near = did_you_mean(name, names(self._prefix))
            raise AttributeError(f"Relay has no operator '{self._prefix}{name}'{near}")
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        modules = (name for name, value in vars(self).items() if isinstance(value, ModuleType))
        return sorted({*names(self._prefix), *modules})


class QnnPasses(ModuleType):
    """`relay.qnn.transform`: the passes on quantized operators."""

    _NAMES: ClassVar = {"CanonicalizeOps": "QnnCanonicalizeOps", "Legalize": "QnnLegalize"}

    def __init__(self) -> None:
        super().__init__("mirstack.relay.qnn.transform", "Passes on quantized operators.")

    def __getattr__(self, name: str) -> Any:
        from ...ir.named_passes import pass_constructor

        found = pass_constructor(self._NAMES.get(name, ""))
        if found is None:
            raise AttributeError(f"module 'mirstack.relay.qnn.transform' has no pass '{name}'")
        return found

    def __dir__(self) -> list[str]:
        return sorted(self._NAMES)


def find(name: str, *, relay: bool = False) -> Any:
    """Returns the function of an operator, or the module of a prefix; None if there is neither.

    `relay`: for `mirstack.relay` itself, where `relay.op` is this package.
    """
    if name.startswith("_"):
        return None
    from .composite import FUNCTIONS

    if name in FUNCTIONS:
        return FUNCTIONS[name]
    if name in _namespaces() or name in own_namespaces():
        prefix = f"{name}."
        namespace = OperatorNamespace(prefix)
        if relay and name == "qnn":
            # TVM has the quantized operators in `relay.qnn.op`, and passes on them beside it.
            namespace.__dict__.update(op=OperatorNamespace(prefix), transform=QnnPasses())
        if name == "vision":
            # Modules of TVM that hold some of the operators.
            namespace.__dict__.update({part: OperatorNamespace(prefix) for part in ("multibox", "nms", "rcnn", "yolo")})
        return namespace
    operator = get_operator(_ALIASES.get(name, name))
    if operator is None:
        # One of an extension, perhaps.
        return find(name, relay=relay) if load_packages() else None
    from .make import make_function

    return make_function(operator)


@cache
def _namespaces() -> frozenset[str]:
    words = (name.split(".") for name in all_operators())
    return frozenset(".".join(parts[:count]) for parts in words for count in range(1, len(parts)))


def names(prefix: str) -> list[str]:
    """Returns the names of the operators' functions with a prefix (`nn.`), which is cut off.

    For the empty prefix: the names without a dot, and the first words of the others.
    """
    from .composite import FUNCTIONS

    every: Sequence[str] = [*all_operators(), *FUNCTIONS, *_ALIASES]
    rest = {name[len(prefix) :] for name in every if name.startswith(prefix)}
    return sorted({name.partition(".")[0] for name in rest})


def register_legalize(op_name: str, legal_op: Any = None, level: int = 10) -> Any:
    """Registers the function by whose results `Legalize` replaces calls of an operator."""
    return register_op_attr(op_name, "FTVMLegalize", legal_op, level)


def register_alter_op_layout(op_name: str, alter_layout: Any = None, level: int = 10) -> Any:
    """Registers the function that chooses an operator's layouts in `AlterOpLayout`."""
    return register_op_attr(op_name, "FTVMAlterOpLayout", alter_layout, level)


def __getattr__(name: str) -> Any:
    found = find(name)
    if found is None:
        raise no_attribute("relay.op", name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *names("")})
