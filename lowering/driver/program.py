"""Defines compiled programs as plain data: all that is needed to run one, without its IR.

`to_json` and `of_json` leave out objects and constants, which `json` cannot write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from ...dialects.array_box import ArrayBox
from .size_of_json import size_of_json

if TYPE_CHECKING:
    from xdsl.ir import Attribute

    from ..tir.signature import KernelSignature, Param
    from .profile_facts import ProfileFacts

DYNAMIC = -(1 << 63)
"""An extent that is known at run time: xDSL's `DYNAMIC_INDEX`, which a program from the cache does without."""


@dataclass(frozen=True)
class Tensor:
    """A tensor's shape, with `DYNAMIC` for extents known at run time, and TVM's dtype."""

    shape: tuple[int, ...]
    dtype: str


Tree: TypeAlias = "Tensor | tuple[Tree, ...]"
"""The type of a Relay function's argument or result: a tensor, or a tuple."""


def tree_of(type: Attribute) -> Tree | None:
    """Returns a Relay type that holds nothing but tensors; None for another."""
    from xdsl.dialects.builtin import TensorType, TupleType

    if isinstance(type, TupleType):
        fields = [tree_of(field) for field in type.types.data]
        known = tuple(field for field in fields if field is not None)
        return known if len(known) == len(fields) else None
    if isinstance(type, TensorType):
        from ...dialects.tir.types import type_to_dtype

        return Tensor(tuple(type.get_shape()), type_to_dtype(type.element_type))
    return None


@dataclass(frozen=True)
class RelayProgram:
    """A Relay entry.

    `constants` are the contents of its table of constants, of which the last `prepare_only` are read only when it is loaded; `prepared`
    are the bytes of each tensor that is computed then. `arena` and `lower_bound` are bytes.
    """

    entry: str
    params: tuple[tuple[str, Tree], ...]
    result: Tree
    messages: Mapping[int, str]
    constants: tuple[ArrayBox, ...]
    arena: int
    lower_bound: int
    prepared: tuple[int, ...]
    prepare_only: int
    objects: tuple[bytes, ...]
    result_names: tuple[str, ...] = ()
    profile: ProfileFacts | None = None
    """What is known of its kernels, if it is profiled."""
    contents: tuple[ArrayBox, ...] = ()
    """The prepared tensors as bytes, where they were computed before."""

    @property
    def raw(self) -> tuple[ArrayBox, ...]:
        """Returns the constants that are read when tensors are prepared of them, and not again."""
        return self.constants[len(self.constants) - self.prepare_only :]

    @property
    def grows_by_preparing(self) -> bool:
        """Tells whether what is prepared takes clearly more bytes than the constants that it is prepared of."""
        return sum(self.prepared) > 1.1 * sum(box.array.nbytes for box in self.raw)

    def with_contents(self, contents: Sequence[ArrayBox]) -> RelayProgram:
        """Returns the program with its prepared tensors, and without the constants that they are prepared of."""
        kept = self.constants[: len(self.constants) - self.prepare_only]
        return replace(self, constants=kept, prepare_only=0, contents=tuple(contents))

    def to_json(self) -> dict[str, Any]:
        """Everything but objects and arrays."""
        return {
            "entry": self.entry,
            "params": [[name, tree_json(tree)] for name, tree in self.params],
            "result": tree_json(self.result),
            "result_names": list(self.result_names),
            "messages": list(self.messages.items()),
            "memory": [self.arena, self.lower_bound, self.prepare_only, list(self.prepared)],
            **_profile_json(self.profile),
        }

    @staticmethod
    def of_json(
        data: Mapping[str, Any],
        constants: Sequence[ArrayBox],
        objects: Sequence[bytes],
        contents: Sequence[ArrayBox] = (),
    ) -> RelayProgram:
        """Reads a program that `to_json` wrote. Raises KeyError, TypeError or ValueError for other data."""
        arena, lower_bound, prepare_only, prepared = data["memory"]
        return RelayProgram(
            str(data["entry"]),
            tuple((str(name), of_tree_json(tree)) for name, tree in data["params"]),
            of_tree_json(data["result"]),
            {int(code): str(text) for code, text in data["messages"]},
            tuple(constants),
            int(arena),
            int(lower_bound),
            tuple(map(int, prepared)),
            0 if contents else int(prepare_only),
            tuple(objects),
            tuple(map(str, data["result_names"])),
            _profile_of_json(data),
            tuple(contents),
        )


KernelKind: TypeAlias = Literal["te", "tir", "func"]
KERNEL_KINDS: tuple[KernelKind, ...] = get_args(KernelKind)


@dataclass(frozen=True)
class KernelProgram:
    """A TIR or TE entry, or a `func.func`; its last `results` parameters are its results."""

    entry: str
    kind: KernelKind
    signature: KernelSignature
    messages: Mapping[int, str]
    objects: tuple[bytes, ...]
    results: int = 0
    places: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where parameters are declared, `file:line:column` by name (`places_of`)."""
    profile: ProfileFacts | None = None
    """What is known of it, if it is profiled."""

    def to_json(self) -> dict[str, Any]:
        """Everything but objects."""
        signature = self.signature
        return {
            "entry": self.entry,
            "kind": self.kind,
            "params": [vars(param) for param in signature.params],
            "symbols": list(signature.symbols),
            "results": self.results,
            "messages": list(self.messages.items()),
            "places": dict(self.places),
            **_profile_json(self.profile),
        }

    @staticmethod
    def of_json(data: Mapping[str, Any], objects: Sequence[bytes]) -> KernelProgram:
        """Reads a program that `to_json` wrote. Raises KeyError, TypeError or ValueError for other data."""
        from ..tir.signature import KernelSignature

        return KernelProgram(
            str(data["entry"]),
            KERNEL_KINDS[KERNEL_KINDS.index(data["kind"])],
            KernelSignature(
                tuple(map(_param_of_json, data["params"])),
                tuple(map(str, data["symbols"])),
            ),
            {int(code): str(text) for code, text in data["messages"]},
            tuple(objects),
            int(data["results"]),
            {str(name): str(place) for name, place in data["places"].items()},
            _profile_of_json(data),
        )


Program: TypeAlias = RelayProgram | KernelProgram


def tree_json(tree: Tree) -> Any:
    """Returns a tree as `json` can write it."""
    if isinstance(tree, Tensor):
        return {"shape": list(tree.shape), "dtype": tree.dtype}
    return [tree_json(field) for field in tree]


def of_tree_json(data: Any) -> Tree:
    """Reads a tree that `tree_json` wrote."""
    if isinstance(data, list):
        return tuple(map(of_tree_json, data))  # pyright: ignore[reportUnknownArgumentType]
    return Tensor(tuple(map(int, data["shape"])), str(data["dtype"]))


def _param_of_json(data: Mapping[str, Any]) -> Param:
    from ..tir.signature import BufferParam, HandleParam, ScalarParam

    name = str(data["name"])
    if "shape" in data:
        strides = data["strides"]
        return BufferParam(
            name,
            str(data["dtype"]),
            tuple(map(size_of_json, data["shape"])),
            None if strides is None else tuple(map(size_of_json, strides)),
            size_of_json(data["elem_offset"]),
            str(data["scope"]),
            bool(data["writes"]),
            bool(data["forward"]),
        )
    return ScalarParam(name, str(data["dtype"])) if "dtype" in data else HandleParam(name)


def _profile_json(facts: ProfileFacts | None) -> dict[str, Any]:
    return {} if facts is None else {"profile": facts.to_json()}


def _profile_of_json(data: Mapping[str, Any]) -> ProfileFacts | None:
    if "profile" not in data:
        return None
    # Here, since few programs are profiled.
    from .profile_facts import ProfileFacts

    return ProfileFacts.of_json(data["profile"])
