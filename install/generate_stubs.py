"""Writes the stubs of mirstack's public modules, `install/stubs/mirstack/relay/__init__.pyi` and so on.

    python install/generate_stubs.py            writes those that changed

A public module is one that `dir(mirstack)`, or `dir` of a public module, lists; so is what `dir` of it lists. A name that its source binds is
imported from there. One that is made when it is first used (`relay.nn.dense`, `transform.FuseOps`, `te.exp`) has the signature that
`inspect.signature` returns. `backend.py` puts the stubs into the wheel.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import ModuleType
from typing import Any

import mirstack
from mirstack.api.relay.op.signatures import EITHER
from mirstack.api.script.words import DTYPES, Word, typed

ROOT = Path(__file__).parent / "stubs"
COMMAND = "python install/generate_stubs.py"
# What a module has beside its names, for checkers alone.
EXTRA = {"mirstack": "__version__: str\nIMPORTED_AT: int\n"}


OF_EXTRAS = ("mirstack.api.onnx.backend",)
"""Modules that need an optional extra: their stubs are the same where it is installed and where it is not."""


def stubs() -> dict[str, str]:
    """Returns the text of each stub by its path under `install/stubs`, formatted."""
    found = {alias: _Stub(alias, module).text() for alias, module in public_modules().items()}
    return {f"{alias.replace('.', '/')}/__init__.pyi": text for alias, text in _formatted(found).items()}


def public_modules() -> dict[str, ModuleType]:
    """Returns the public modules by the names under which they are imported."""
    found: dict[str, ModuleType] = {"mirstack": mirstack}
    todo = ["mirstack"]
    while todo:
        alias = todo.pop()
        for name in _names(found[alias]):
            value = _value(found[alias], name)
            if isinstance(value, ModuleType):
                found[f"{alias}.{name}"] = value
                if value.__name__.startswith(("mirstack.api.", "mirstack.relay.", "mirstack.topi.")):
                    todo.append(f"{alias}.{name}")
    return dict(sorted(found.items()))


def _names(module: ModuleType) -> list[str]:
    return [name for name in dir(module) if not name.startswith("_")]


def _value(module: ModuleType, name: str) -> Any:
    if f"{module.__name__}.{name}" in OF_EXTRAS:
        # Its source is read by checkers all the same.
        return ModuleType(f"{module.__name__}.{name}")
    return getattr(module, name)


@cache
def _bound(module: str) -> dict[str, ast.AST]:
    """Returns what the source of a module binds at its top, in blocks for type checkers too, by name."""
    is_file = module == "mirstack" or (module.startswith("mirstack.") and module.split(".")[1] not in ("relay", "topi"))
    spec = find_spec(module) if is_file else None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return {}
    found: dict[str, ast.AST] = {}
    for node in _statements(ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found[name] = node
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found |= {each.asname or each.name: node for each in names}
            case ast.Assign(targets=targets):
                found |= {
                    each.id: node for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)
                }
            case ast.AnnAssign(target=ast.Name(id=name)):
                found[name] = node
            case _:
                pass
    return found


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If):
            yield from _statements([*node.body, *node.orelse])
        else:
            yield node


class _Stub:
    """The stub of one module."""

    def __init__(self, alias: str, module: ModuleType):
        self.alias = alias
        self.module = module
        self.imports: set[str] = set()
        self.lines: list[str] = []

    def text(self) -> str:
        """Returns the text, not yet formatted."""
        real = self.module.__name__
        is_ours = real == "mirstack" or real.startswith(("mirstack.api.", "mirstack.relay.", "mirstack.topi."))
        if not is_ours or not _names(self.module):
            return f"{_HEAD}from {real} import *\n"
        for name in _names(self.module):
            self._add(name, _value(self.module, name))
        document = inspect.cleandoc(self.module.__doc__ or "")
        parts = [f'"""{document}\n\nWritten by `{COMMAND}`, not by hand.\n"""\n', *sorted(self.imports), *self.lines]
        return "\n".join(parts) + "\n" + EXTRA.get(self.alias, "")

    def _add(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType):
            self.imports.add(f"from {self.alias} import {name} as {name}")
            return
        if isinstance(value, Word):
            if name in DTYPES:
                by_dtype = inspect.signature(typed)
                value = by_dtype.replace(parameters=list(by_dtype.parameters.values())[1:])
                self.lines.append(self.definition(name, value))
                return
            value = value.value or value
        home = self._home(name, value)
        if home is not None:
            module, original = home
            # Only `import x as x` hands a name on.
            local = name if name == original else f"_{original}"
            self.imports.add(f"from {module} import {original} as {local}")
            if local != name:
                self.lines.append(f"{name} = {local}")
        elif callable(value) and not isinstance(value, type) and hasattr(value, "__name__"):
            self.lines += _overloads(self, name, value) or [self.definition(name, inspect.signature(value))]
        else:
            self.lines.append(f"{name}: {self._class(type(value))}")

    def _home(self, name: str, value: Any) -> tuple[str, str] | None:
        """Returns the module whose source binds a value, and its name there; None where only running code does."""
        if name in _bound(self.module.__name__) and self.alias != "mirstack":
            node = _bound(self.module.__name__)[name]
            if not isinstance(node, ast.ImportFrom | ast.Import):
                return self.module.__name__, name
        if (imported := self._imported_from(name)) is not None and self.alias == "mirstack":
            return imported
        original = inspect.unwrap(value) if callable(value) else value
        module, qualified = getattr(original, "__module__", None), getattr(original, "__qualname__", None)
        if isinstance(module, str) and isinstance(qualified, str):
            node = _bound(module).get(qualified)
            is_public = not qualified.startswith("_")
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and is_public:
                return module, qualified
        node = _bound(self.module.__name__).get(name)
        is_own = node is not None and not (isinstance(node, ast.ImportFrom) and node.module in ("typing", "__future__"))
        return (self.module.__name__, name) if is_own else None

    def _imported_from(self, name: str) -> tuple[str, str] | None:
        """Returns the module that the source imports a name from, and its name there."""
        node = _bound(self.module.__name__).get(name)
        if not isinstance(node, ast.ImportFrom):
            return None
        package = self.module.__name__ if hasattr(self.module, "__path__") else self.module.__name__.rpartition(".")[0]
        module = resolve_name("." * node.level + (node.module or ""), package)
        original = next(each.name for each in node.names if (each.asname or each.name) == name)
        return module, original

    def definition(self, name: str, signature: inspect.Signature, head: str = "") -> str:
        parameters: list[str] = []
        star = False
        for each in signature.parameters.values():
            text = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "") + each.name
            if each.kind is each.KEYWORD_ONLY and not star:
                parameters.append("*")
            star = star or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
            text += f": {self._type(each.annotation)}"
            if each.default is not each.empty:
                text += f" = {_default(each.default)}"
            parameters.append(text)
        result = self._type(signature.return_annotation)
        return f"{head}def {name}({', '.join(parameters)}) -> {result}: ..."

    def _type(self, annotation: Any) -> str:
        """Returns a type as the stub writes it; what it names is imported under a name with an underscore."""
        if annotation is inspect.Signature.empty:
            return "object"
        text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation, "mirstack.api")
        return re.sub(r"(?<![\w.'\"])[A-Za-z_][\w.]*(?![\w'\"])", lambda found: self._imported(found[0]), text)

    def _class(self, cls: type) -> str:
        self.imports.add(f"from {cls.__module__} import {cls.__name__} as _{cls.__name__}")
        return f"_{cls.__name__}"

    def _imported(self, written: str) -> str:
        module, _, name = written.rpartition(".")
        if not module:
            if written in ("None", "True", "False") or hasattr(builtins, written):
                if written not in _names(self.module):
                    return written
                self.imports.add("import builtins as _builtins")
                return f"_builtins.{written}"
            own = _bound(self.module.__name__).get(written)
            module = self.module.__name__ if isinstance(own, ast.ClassDef | ast.AnnAssign) else _TYPES[written]
        self.imports.add(f"from {module} import {name} as _{name}")
        return f"_{name}"


_TYPES = {
    "Any": "typing",
    "Call": "mirstack.api.relay.expr",
    "Callable": "collections.abc",
    "Constant": "mirstack.api.relay.expr",
    "Device": "mirstack.api.device",
    "Expr": "mirstack.dialects.tir.node.expr",
    "ExprLike": "mirstack.dialects.tir.node.expr",
    "Ints": "mirstack.api.relay.op.make",
    "Literal": "typing",
    "Mapping": "collections.abc",
    "Numbers": "mirstack.api.relay.op.make",
    "RelayExpr": "mirstack.api.relay.expr",
    "Schedule": "mirstack.lowering.te.schedule.frontend",
    "Sequence": "collections.abc",
    "SparseMatrix": "mirstack.api.relay.op.composite",
    "Tensor": "mirstack.dialects.te.tensor",
    "TupleWrapper": "mirstack.api.relay.expr",
}
"""The modules of the types that signatures name."""

_HEAD = f'"""Written by `{COMMAND}`, not by hand."""\n\n'


def _overloads(stub: _Stub, name: str, value: Callable[..., Any]) -> list[str]:
    """Returns the signatures of an operator that returns one result or several, for each of the two."""
    prefix = value.__qualname__ if value.__qualname__ in EITHER else f"vision.{name}"
    signature = inspect.signature(value)
    either = str(signature.return_annotation).split(" | ")
    if prefix not in EITHER or len(either) != 2:
        return []
    selector, several, one = EITHER[prefix]
    stub.imports.add("from typing import overload as _overload")
    names = list(signature.parameters)
    later = names[names.index(selector) :]
    parameters = signature.parameters
    by_several = [p.replace(annotation=f"Literal[{several}]") if p.name == selector else p for p in parameters.values()]
    by_one = [
        p.replace(
            kind=p.KEYWORD_ONLY if p.name in later else p.kind,
            annotation=f"Literal[{one}]" if p.name == selector else p.annotation,
            default=p.empty if p.name == selector else p.default,
        )
        for p in parameters.values()
    ]
    results = {"one": either[0], "several": either[1]}
    made = [
        signature.replace(parameters=by_several, return_annotation=results["several"]),
        signature.replace(parameters=by_one, return_annotation=results["one"]),
        signature,
    ]
    return [stub.definition(name, each, "@_overload\n") for each in made]


def _default(value: Any) -> str:
    simple = value is None or isinstance(value, bool | int | float | str | tuple)
    return repr(value) if simple else "..."


def _formatted(texts: dict[str, str]) -> dict[str, str]:
    """Returns texts as `ruff format` writes them; one call for all."""
    mark = "\n# ----- next -----\n"
    ruff = Path(sys.executable).with_name("ruff")
    command = [ruff, "format", "--line-length", "120", "--stdin-filename", "stubs.pyi", "-"]
    done = subprocess.run(command, input=mark.join(texts.values()), capture_output=True, text=True, check=True)
    parts = [part.strip() + "\n" for part in done.stdout.split(mark.strip())]
    return dict(zip(texts, parts, strict=True))


def main() -> None:
    """Writes the stubs that changed, removes those of modules that are gone, and says which."""
    texts = stubs()
    for path, text in texts.items():
        file = ROOT / path
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            print(path)
    for file in ROOT.rglob("*.pyi"):
        if file.relative_to(ROOT).as_posix() not in texts:
            file.unlink()
            print(f"{file.relative_to(ROOT)}: removed")


if __name__ == "__main__":
    import_module("mirstack.api")
    main()
