"""The standard prelude, as `tvm.relay.prelude`: lists, options, trees, and functions on them.

    p = relay.prelude.Prelude(mod)
    p.sum(p.map(double, p.cons(relay.const(1), p.nil())))

Its text is `std/prelude.rly`.
"""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING

from ...support.arguments import check
from ...support.diagnostics import Diagnostic, MirValueError
from ...support.public_names import public_names
from ..ir.module import IRModule
from .adt import Constructor
from .expr import GlobalVar
from .ty import GlobalTypeVar

_TYPES = {"List": "l", "Option": "optional", "Tree": "tree"}
"""The data types, and what a prelude calls them besides."""


class Prelude:
    """The names of the prelude, which the module then has: `p.map`, `p.l`, `p.cons`, `p.nil`."""

    if TYPE_CHECKING:
        l: GlobalTypeVar  # noqa: E741
        optional: GlobalTypeVar
        tree: GlobalTypeVar
        cons: Constructor
        nil: Constructor
        some: Constructor
        none: Constructor
        rose: Constructor
        id: GlobalVar
        compose: GlobalVar
        flip: GlobalVar
        iterate: GlobalVar
        hd: GlobalVar
        tl: GlobalVar
        nth: GlobalVar
        length: GlobalVar
        update: GlobalVar
        map: GlobalVar
        foldl: GlobalVar
        foldr: GlobalVar
        foldr1: GlobalVar
        sum: GlobalVar
        concat: GlobalVar
        filter: GlobalVar
        zip: GlobalVar
        rev: GlobalVar
        map_accumr: GlobalVar
        map_accuml: GlobalVar
        unfoldr: GlobalVar
        unfoldl: GlobalVar
        tmap: GlobalVar
        size: GlobalVar

    def __init__(self, mod: IRModule | None = None):
        """Takes the prelude over into `mod`, a new module without one."""
        check(mod, "mod", "an IRModule", IRModule, NoneType)
        self.mod = IRModule() if mod is None else mod
        self.load_prelude()

    def __repr__(self) -> str:
        return f"Prelude({self.mod!r})"

    def load_prelude(self) -> None:
        """Reads the prelude's text into the module."""
        prelude = IRModule()
        prelude.import_from_std("prelude.rly")
        self.mod.import_from_std("prelude.rly")
        for variable in prelude.get_global_vars():
            setattr(self, variable.name_hint, self.mod.get_global_var(variable.name_hint))
        for name, short in _TYPES.items():
            header, *constructors = self.mod.get_type(name)
            setattr(self, short, header)
            for constructor in constructors:
                setattr(self, constructor.name_hint.lower(), constructor)

    def get_name(self, canonical: str, dtype: str) -> str:
        """The name of what exists for each dtype: `tensor_array` and `float32` are `tensor_array_float32`."""
        if canonical == "tensor_t":
            return f"tensor_{dtype}_t"
        return f"{canonical}_{dtype}"

    def get_global_var(self, canonical: str, dtype: str) -> GlobalVar:
        """The function of that name for a dtype. Raises MirError where the module has none."""
        return self.mod.get_global_var(self.get_name(canonical, dtype))

    def get_type(self, canonical: str, dtype: str) -> GlobalTypeVar:
        """The data type of that name for a dtype. Raises MirError where the module has none."""
        return self.mod.get_global_type_var(self.get_name(canonical, dtype))

    def get_ctor(self, ty_name: str, canonical: str, dtype: str) -> Constructor:
        """The constructor `canonical` of `ty_name` for a dtype. Raises MirError where there is none."""
        name = self.get_name(canonical, dtype)
        header, *constructors = self.mod.get_type(ty_name)
        for constructor in constructors:
            if isinstance(constructor, Constructor) and constructor.name_hint == name:
                return constructor
        known = ", ".join(constructor.name_hint for constructor in constructors) or "none"
        message = f"the data type {header.name_hint} has no constructor {name}"
        raise MirValueError(Diagnostic(message).with_note(f"it has {known}"))

    def get_tensor_ctor(self, canonical: str, dtype: str) -> Constructor:
        """The constructor of the tensors of a dtype. Raises MirError where there is none."""
        return self.get_ctor(self.get_name("tensor_t", dtype), canonical, dtype)


__all__ = ["Prelude"]


__dir__ = public_names(__name__)
