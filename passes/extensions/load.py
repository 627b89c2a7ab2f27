"""Loads the files of extensions: `.mir` files of items, and Python files."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from io import StringIO
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard

from ...support import extensions
from ...support.diagnostics import Diagnostic, MirError
from .extension import Extension, ItemFormat

if TYPE_CHECKING:
    from xdsl.ir import Dialect
    from xdsl.passes import ModulePass

PASS, DIALECT, FORMAT, LOADED = "pass", "dialect", "format", "extension"
"""Kinds of definitions besides ops, whose kind is their name: passes, dialects, formats, and what was loaded."""


def load_extension(path: str | PathLike[str]) -> None:
    """Loads a file: what it defines is known from now on, in every program.

    A `.mir` file has operators with their functions, rules, schedule rules, targets; a Python file registers operators, or defines passes,
    dialects and `mirstack.Extension`s. Raises MirError for a file that cannot be read, for what is wrong in it, and where a name is
    taken.
    """
    file = Path(path)
    if file.suffix not in (".mir", ".py"):
        raise _unreadable(file, "it is neither a .mir nor a .py file")
    if not file.is_file():
        raise _unreadable(file, "there is no such file")
    if file.suffix == ".mir":
        load_items(file, str(path))
    else:
        _load_python(file.resolve(), str(path))


def _unreadable(file: Path, reason: str) -> MirError:
    return MirError(Diagnostic(f"the extension {file} cannot be loaded: {reason}"))


def load_items(path: Path, origin: str) -> None:
    """Loads a `.mir` file: its ops become definitions, its operators entries of the table."""
    from xdsl.dialects.builtin import StringAttr
    from xdsl.printer import Printer

    from ...dialects.relay.operator import define_outside
    from ...dialects.rule import DefineOperatorOp
    from ..rules.engine.library import load_rules

    module = load_rules(path)
    for op in module.ops:
        name = op.properties.get("sym_name")
        if not isinstance(name, StringAttr):
            continue
        text = StringIO()
        Printer(text, print_generic_format=True).print_op(op)
        found = extensions.register(op.name, name.data, op, origin=origin, text=text.getvalue())
        if isinstance(op, DefineOperatorOp) and found.value is op:
            define_outside(op.entry())
    extensions.register(LOADED, str(path), path, origin=origin, text="")


def _load_python(path: Path, origin: str) -> None:
    """Imports a Python file, and registers what it defines."""
    text = path.read_bytes()
    name = f"mirstack_extension_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except MirError:
        del sys.modules[name]
        raise
    except Exception as error:
        del sys.modules[name]
        raise _failed(origin, error, path) from error
    # Passes and dialects do not change what a program without them is compiled to.
    extensions.register(LOADED, str(path), module, origin=origin, text=hashlib.sha256(text).hexdigest())
    register_all(module, origin)


def _failed(origin: str, error: Exception, path: Path | None = None) -> MirError:
    """Returns the error of an extension whose import fails, at the last of its lines that ran."""
    lines = [
        frame.tb_lineno for frame in _frames(error) if path is None or frame.tb_frame.f_code.co_filename == str(path)
    ]
    line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else lines[-1] if path and lines else None
    where = f" in line {line}" if line else ""
    message = str(error).splitlines()[0] if str(error) else "no message"
    return MirError(Diagnostic(f"{origin} fails{where}: {type(error).__name__}: {message}"))


def _frames(error: Exception) -> Iterator[Any]:
    frame = error.__traceback__
    while frame is not None:
        yield frame
        frame = frame.tb_next


def register_all(module: ModuleType, origin: str) -> None:
    """Registers the passes, dialects and extensions that a module defines."""
    from xdsl.ir import Dialect

    for value in list(vars(module).values()):
        if isinstance(value, Extension):
            register_extension(value, origin)
        elif isinstance(value, Dialect):
            register_dialect(value.name, lambda value=value: value, origin)
        elif _is_pass(value) and value.__module__ == module.__name__:
            register_pass(value.name, lambda value=value: value, origin)


def _is_pass(value: object) -> TypeGuard[type[ModulePass]]:
    """Returns whether a value is the class of a pass that has a name."""
    from xdsl.passes import ModulePass

    return isinstance(value, type) and issubclass(value, ModulePass) and isinstance(getattr(value, "name", None), str)


def register_extension(extension: Extension, origin: str) -> None:
    """Registers all that an extension adds, its files and modules loaded."""
    for name, factory in extension.dialects.items():
        register_dialect(name, factory, origin)
    for name, format in extension.formats.items():
        register_format(name, format, origin)
    for each in extension.passes:
        register_pass(each.name, lambda each=each: each, origin)
    for name in extension.modules:
        try:
            module = import_module(name)
        except MirError:
            raise
        except Exception as error:
            raise _failed(origin, error) from error
        register_all(module, origin)
    for path in extension.files:
        file = Path(path)
        if not file.is_file():
            raise MirError(Diagnostic(f"{origin}: there is no file {file}"))
        load_items(file, origin)


def register_pass(name: str, factory: Callable[[], type[ModulePass]], origin: str) -> None:
    """Registers a pass by its name in `-p`. Raises MirError where mirstack has one of the name."""
    from ..registry import PASSES

    if any(entry.name == name for entry in PASSES):
        raise MirError(Diagnostic(f"{origin} defines the pass '{name}', which is one of mirstack's"))
    if extensions.find(PASS, name) is None:
        extensions.register(PASS, name, factory, origin=origin, text="")


def register_dialect(name: str, factory: Callable[[], Dialect], origin: str) -> None:
    """Registers a dialect."""
    if extensions.find(DIALECT, name) is None:
        extensions.register(DIALECT, name, factory, origin=origin, text="")


def register_format(name: str, format: ItemFormat, origin: str) -> None:
    """Registers a format of `.mir` items. Raises MirError where its name, or a word, is taken."""
    from ...parser.items import DECORATORS, FORMATS, KEYWORDS

    module, _, name_in_it = format.where.partition(":")
    where = (module, name_in_it)
    if FORMATS.get(name) == where:
        return
    taken = [word for word in (*format.keywords, *format.decorators) if word in KEYWORDS or word in DECORATORS]
    if name in FORMATS or taken:
        what = f"begins items with '{taken[0]}'" if taken else f"is called '{name}'"
        raise MirError(Diagnostic(f"{origin} has a format that {what}, as another does"))
    FORMATS[name] = where
    KEYWORDS.update(dict.fromkeys(format.keywords, name))
    DECORATORS.update(dict.fromkeys(format.decorators, name))
    extensions.register(FORMAT, name, format, origin=origin, text="")
