"""`CompareBeforeAfter`: tests of passes, written as functions before and after."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

from ...support.public_names import public_names
from ..ir.module import IRModule
from ..ir.prim_func import PrimFunc
from ..ir.structural import assert_structural_equal
from ..ir.transform import Pass
from ..script.source import undecorated_prim_func


class CompareBeforeAfter:
    """Runs `transform` on `before` and compares the result with `expected`, in each subclass.

        class TestFolds(testing.CompareBeforeAfter):
            transform = tir.transform.Simplify()

            def before(A: T.Buffer(1, "int32")):
                A[0] = 1 + 2

            def expected(A: T.Buffer(1, "int32")):
                A[0] = 3

    `before` and `expected` are functions of TVMScript, without a decorator; classes of such functions; PrimFuncs and modules;
    or methods with `self`, which return one of these. `expected` may be the class of an exception, `transform` a
    method that returns a function. Names of functions are not compared.
    """

    check_well_formed: bool = True
    """Is TVM's; what is not well-formed is always refused."""

    def __init_subclass__(cls) -> None:
        for names, normalize in (
            (("before", "Before"), _program),
            (("expected", "Expected"), _program),
            (("transform",), _transform),
        ):
            found = [name for name in names if hasattr(cls, name)]
            if len(found) > 1:
                raise TypeError(f"{cls.__name__} has both {found[0]} and {found[1]}: one is enough")
            if found and not _is_fixture(value := inspect.getattr_static(cls, found[0])):
                setattr(cls, names[0], normalize(value))

    def test_compare(self, before: Any, expected: Any, transform: Callable[[Any], Any]) -> None:
        """Fails unless the transformed program is the expected one, or raises the expected exception."""
        if inspect.isclass(expected) and issubclass(expected, Exception):
            import pytest

            with pytest.raises(expected):
                transform(before)
            return
        assert_structural_equal(_unnamed(transform(before)), _unnamed(expected))


def _unnamed(program: Any) -> Any:
    return program.with_attr("global_symbol", "main") if isinstance(program, PrimFunc) else program


def _is_fixture(value: Any) -> bool:
    return hasattr(value, "_pytestfixturefunction") or type(value).__name__ == "FixtureFunctionDefinition"


def _takes_self(value: Any) -> bool:
    return inspect.isfunction(value) and "self" in inspect.signature(value).parameters


def _fixture(function: Callable[..., Any]) -> Any:
    import pytest

    return pytest.fixture(function)


def _program(value: Any) -> Any:
    """Returns a fixture of the program that a member of the class describes."""
    if _takes_self(value):
        return _fixture(value)

    def program(self: object) -> object:
        return _made(value)

    return _fixture(program)


def _made(value: Any) -> Any:
    if isinstance(value, PrimFunc | IRModule) or (inspect.isclass(value) and issubclass(value, Exception)):
        return value
    if inspect.isclass(value):
        members = {name: member for name, member in vars(value).items() if not name.startswith("_")}
        return IRModule({name: _made(member).with_attr("global_symbol", name) for name, member in members.items()})
    if inspect.isfunction(value):
        return undecorated_prim_func(value)
    raise TypeError(f"a program is a function of TVMScript, a class of such, a PrimFunc or a module, not {value!r}")


def _transform(value: Any) -> Any:
    """Returns a fixture of the function that a pass, or a method that returns one, is on programs."""
    if _takes_self(value):
        original = cast("Callable[..., Any]", value)

        def made(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
            return _on_programs(original(*args, **kwargs))

        made.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
        return _fixture(made)
    if not isinstance(value, Pass):
        raise TypeError(f"transform is a pass, or a method that returns one, not {value!r}")

    def transform(self: object) -> Callable[[Any], Any]:
        return _on_programs(value)

    return _fixture(transform)


def _on_programs(transform: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns a transformation of modules as one of functions, too."""

    def apply(program: Any) -> Any:
        if isinstance(program, PrimFunc):
            return transform(IRModule({"main": program}))["main"]
        return transform(program)

    return apply


__all__ = ["CompareBeforeAfter"]


__dir__ = public_names(__name__)
