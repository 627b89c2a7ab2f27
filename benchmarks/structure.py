"""Counts figures of the source's structure from its syntax, and draws docs/architecture.md's picture.

python -m benchmarks.structure              # a figure a line, and the places that it counts
python -m benchmarks.structure --json       # {"imports upward": {"count": 0, "places": []}, …}
python -m benchmarks.structure --picture    # draws the rooms and their imports into docs/architecture.md
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "mirstack"
FOLDERS = ("support", "dialects", "parser", "passes", "lowering", "frontends", "api", "driver", "editor", "fuzz")
"""The top folders; each may import those before it."""
COUNTED = tuple(folder for folder in FOLDERS if folder != "fuzz")
"""The folders whose lines are counted."""
PATCHES = "support/xdsl_patches/"
DRAWN_AS_ONE = ("support", "api", "driver", "editor", "fuzz")
PAGE = ROOT / "docs/architecture.md"
LONG = 800
XDSL = (
    "xdsl.ir",
    "xdsl.irdl",
    "xdsl.parser",
    "xdsl.pattern_rewriter",
    "xdsl.printer",
    "xdsl.rewriter",
    "xdsl.traits",
    "xdsl.builder",
)
"""The packages of xDSL whose private fields are looked for."""


@dataclass(frozen=True)
class Import:
    """One import of a module by another: `late` in a function, `typing` only for the type checker."""

    importer: str
    imported: str
    line: int
    late: bool
    typing: bool


@dataclass(frozen=True)
class Figure:
    """A figure and the places that it counts."""

    count: int
    places: list[str]


class Source:
    """The modules of the package, by names such as `passes.tir.regions`."""

    def __init__(self, root: Path = ROOT):
        self.root = root
        files = [
            root / "__init__.py",
            root / "universe.py",
            *(file for top in FOLDERS for file in (root / top).rglob("*.py")),
        ]
        self.files = {_module(file.relative_to(root)): file for file in sorted(files)}
        self.texts = {module: file.read_text(encoding="utf-8") for module, file in self.files.items()}
        self.trees = {module: ast.parse(text) for module, text in self.texts.items()}

    def path(self, module: str) -> str:
        """Returns the file of a module, from the root: `passes/tir/rewriting.py`."""
        return self.files[module].relative_to(self.root).as_posix()

    def lines(self, module: str) -> int:
        """Returns the number of lines of a module."""
        return self.texts[module].count("\n")

    @cached_property
    def imports(self) -> list[Import]:
        """Returns the imports between the package's modules, without self-imports and those of stubs."""
        return [
            each
            for module in self.files
            for each in self._imports_of(module)
            if each.imported != module and each.imported in self.files
        ]

    def _imports_of(self, module: str) -> Iterator[Import]:
        package = module.split(".") if module else []
        if package and self.files[module].name != "__init__.py":
            package.pop()
        pending: list[tuple[ast.AST, bool, bool]] = [(self.trees[module], False, False)]
        while pending:
            node, late, typing = pending.pop()
            if isinstance(node, ast.ImportFrom):
                base = self._base(node, package)
                for alias in node.names if base is not None else ():
                    name = f"{base}.{alias.name}".strip(".")
                    yield Import(module, name if name in self.files else base or "", node.lineno, late, typing)
            late = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            typed = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
            pending += [(child, late, typing or typed) for child in ast.iter_child_nodes(node)]

    @staticmethod
    def _base(node: ast.ImportFrom, package: list[str]) -> str | None:
        """Returns the module that `from … import` names; None for one outside of the package."""
        named = [] if node.module is None else node.module.split(".")
        if node.level:
            return ".".join([*package[: len(package) - node.level + 1], *named])
        return ".".join(named[1:]) if named[0] == PACKAGE else None


def figures(source: Source) -> dict[str, Figure]:
    """Computes all figures, in the order in which they are printed."""
    return {name: figure(source) for name, figure in FIGURES.items()}


def _figure(places: Iterable[str]) -> Figure:
    found = list(places)
    return Figure(len(found), found)


def _upward(source: Source) -> Figure:
    """Imports of a top folder by one before it."""
    found: set[str] = set()
    for each in source.imports:
        importer, imported = _top(each.importer), _top(each.imported)
        if importer in FOLDERS and imported in FOLDERS and FOLDERS.index(imported) > FOLDERS.index(importer):
            found.add(f"{source.path(each.importer)}:{each.line}: {each.imported}")
    return _figure(sorted(found))


def _circles(source: Source, late: bool) -> Figure:
    """Counts groups of modules that import each other; with `late`, also by imports in functions."""
    graph: dict[str, set[str]] = {module: set() for module in source.files}
    for each in source.imports:
        if not each.typing and (late or not each.late):
            graph[each.importer].add(each.imported)
    return _figure(" <-> ".join(sorted(group)) for group in strong_components(graph) if len(group) > 1)


def strong_components(graph: dict[str, set[str]]) -> list[list[str]]:
    """Returns the strongly connected components of a graph (Tarjan), those that others lead to first."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    found: list[list[str]] = []
    for root in graph:
        work = [] if root in order else [(root, iter(sorted(graph[root])))]
        while work:
            node, rest = work[-1]
            if node not in order:
                order[node] = low[node] = len(order)
                path.append(node)
                on_path.add(node)
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    start = path.index(node)
                    found.append(path[start:])
                    on_path.difference_update(path[start:])
                    del path[start:]
            elif following not in order:
                work.append((following, iter(sorted(graph[following]))))
            elif following in on_path:
                low[node] = min(low[node], order[following])
    return found


def _patches(source: Source) -> Figure:
    """Counts files that assign to xDSL's classes or change how its modules are imported."""
    found: dict[str, list[str]] = defaultdict(list)
    for module, tree in source.trees.items():
        path = source.path(module)
        names = _xdsl_names(tree)
        for node in ast.walk(tree):
            if not path.startswith(PATCHES) and _changes(node, names):
                found[path].append(str(getattr(node, "lineno", 0)))
    return _figure(f"{path}:{','.join(lines)}" for path, lines in found.items())


def _changes(node: ast.AST, names: set[str]) -> bool:
    """Tells whether a statement is `Class.field = …` or `setattr(Class, …)`, or a loop of these."""
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(isinstance(each, ast.Attribute) and _is_class(each.value, names) for each in targets)
    if isinstance(node, ast.For):
        over = {each.id for each in ast.walk(node.iter) if isinstance(each, ast.Name)}
        loops = (
            {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)} if over & names else set[str]()
        )
        return bool(loops) and any(_sets(each, loops) for each in ast.walk(node))
    if isinstance(node, ast.FunctionDef):
        # A loader of xDSL's modules that changes what they define.
        return node.name == "exec_module" and "xdsl" in names
    return _sets(node, names)


def _sets(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr":
        return _is_class(node.args[0], names)
    return False


def _is_class(node: ast.expr, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names and node.id not in ("self", "cls")


def _xdsl_names(tree: ast.Module) -> set[str]:
    """Returns the names that a module imports from xDSL and those of its tables of such names.

    "xdsl" is among them if the module names a module of xDSL.
    """
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "xdsl":
            found |= {alias.asname or alias.name for alias in node.names}
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"xdsl(\.\w+)+", node.value)
        ):
            found.add("xdsl")
    for node in tree.body:
        target = (
            node.targets[0]
            if isinstance(node, ast.Assign)
            else node.target
            if isinstance(node, ast.AnnAssign)
            else None
        )
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if isinstance(target, ast.Name) and isinstance(value, ast.Tuple | ast.List | ast.Dict):
            used = {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}
            if used & found:
                found.add(target.id)
    return found


def _private(source: Source) -> Figure:
    """Counts files outside of the patches that use fields of xDSL whose names begin with `_`."""
    private = xdsl_private_fields()
    found: dict[str, set[str]] = {}
    for module, tree in source.trees.items():
        path = source.path(module)
        own = _own_fields(tree)
        used = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and node.attr in private and node.attr not in own
        }
        used |= {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "xdsl"
            for alias in node.names
            if alias.name.startswith("_")
        }
        if used and not path.startswith(PATCHES):
            found[path] = used
    return _figure(f"{path}: {', '.join(sorted(used))}" for path, used in found.items())


def xdsl_private_fields() -> set[str]:
    """Returns the names that begin with `_` of members of xDSL's classes, except for Python's own."""
    found: set[str] = set()
    for name in XDSL:
        spec = find_spec(name)
        assert spec is not None and spec.origin is not None
        file = Path(spec.origin)
        for each in sorted(file.parent.rglob("*.py")) if file.name == "__init__.py" else [file]:
            found |= _own_fields(ast.parse(each.read_text(encoding="utf-8")))
    return {name for name in found if re.match(r"_[a-z]", name)}


def _own_fields(tree: ast.Module) -> set[str]:
    """Returns the names of the fields, methods and functions that a module defines."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
            found.add(node.attr)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id == "__slots__":
                    found |= {
                        each.value
                        for each in ast.walk(node.value)
                        if isinstance(each, ast.Constant) and isinstance(each.value, str)
                    }
    return found


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _class_names(source: Source, *, ops: bool = False) -> Figure:
    """Counts public class names that several modules of a top folder define; with `ops`, of ops only."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    others: set[tuple[str, str]] = set()
    for module, tree in source.trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[_top(module), node.name].append(source.path(module))
                if not any("irdl_op_definition" in ast.unparse(each) for each in node.decorator_list):
                    others.add((_top(module), node.name))
    several = [(key, paths) for key, paths in found.items() if len(paths) > 1 and (key in others) != ops]
    several.sort(key=lambda each: -len(each[1]))
    return _figure(f"{top}: {name} x{len(paths)}: {', '.join(paths)}" for (top, name), paths in several)


def _flat(source: Source) -> Figure:
    """Lists the modules directly in passes/tir, outside of its rooms."""
    return _figure(
        path
        for path in map(source.path, source.files)
        if re.fullmatch(r"passes/tir/\w+\.py", path) and "__init__" not in path
    )


def _tir_rules(source: Source) -> Figure:
    """Counts rules on TIR that ship with the passes, as their indexes list them."""
    found: list[str] = []
    for file in sorted((source.root / "passes").rglob("*.mir")):
        index = file.with_suffix(".json")
        for entry in json.loads(index.read_text())["value"]["rules"] if index.exists() else ():
            if entry[2][0].startswith("tir."):
                found.append(f"{file.relative_to(source.root).as_posix()}: @{entry[0]}")
    return _figure(found)


def _lines(source: Source) -> Figure:
    """Counts the lines of Python in the seven folders."""
    counts: dict[str, int] = defaultdict(int)
    for module in source.files:
        if _top(module) in COUNTED:
            counts["/".join(source.path(module).split("/")[:-1][:2])] += source.lines(module)
    return Figure(
        sum(counts.values()),
        [f"{folder}: {count}" for folder, count in sorted(counts.items(), key=lambda each: -each[1])],
    )


def _long(source: Source) -> Figure:
    """Counts files of more than 800 lines."""
    long = sorted(((source.lines(module), source.path(module)) for module in source.files), reverse=True)
    return _figure(f"{path}: {lines}" for lines, path in long if lines > LONG)


def _helpers(source: Source) -> Figure:
    """Lists the modules with exactly one importer, of the same folder: each could be merged into it."""
    importers: dict[str, set[str]] = defaultdict(set)
    for each in source.imports:
        importers[each.imported].add(each.importer)
    return _figure(
        f"{source.path(module)} ({source.lines(module)}) <- {source.path(user)} ({source.lines(user)})"
        for module, users in sorted(importers.items())
        for user in users
        if len(users) == 1
        and source.files[module].parent == source.files[user].parent
        and source.files[module].name != "__init__.py"
    )


FIGURES: dict[str, Callable[[Source], Figure]] = {
    "imports upward": _upward,
    "circles at import": lambda source: _circles(source, late=False),
    "circles with imports in functions": lambda source: _circles(source, late=True),
    "files that patch xDSL outside of the room": _patches,
    "files that use xDSL's private fields": _private,
    "public class names used twice in a top folder": _class_names,
    "names of ops that several dialects have": lambda source: _class_names(source, ops=True),
    "modules flat in passes/tir": _flat,
    "shipped rules on TIR": _tir_rules,
    "lines": _lines,
    "files over 800 lines": _long,
    "modules with one importer, in the same folder": _helpers,
}


def picture(source: Source) -> str:
    """Draws the rooms of the source and their imports as a Mermaid flowchart.

    Of the imports only those are drawn that others do not imply: a room reaches what the rooms below it reach. Rooms that import
    each other are joined by a line with two heads.
    """
    graph: dict[str, set[str]] = defaultdict(set)
    for each in source.imports:
        importer, imported = (_room(source, module) for module in (each.importer, each.imported))
        if importer and imported and importer != imported and not each.typing:
            graph[importer].add(imported)
    rooms = sorted({*graph, *(room for rooms in graph.values() for room in rooms)})
    group = {
        room: tuple(sorted(found))
        for found in strong_components({room: graph[room] for room in rooms})
        for room in found
    }
    below = {group[room]: set[tuple[str, ...]]() for room in rooms}
    for room in rooms:
        below[group[room]] |= {group[each] for each in graph[room] if group[each] != group[room]}
    reached: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for found in strong_components({room: graph[room] for room in rooms}):
        key = tuple(sorted(found))
        reached[key] = below[key].union(*(reached[each] for each in below[key]))
    lines = ["```mermaid", "flowchart TB"]
    for top in reversed(FOLDERS):
        inside = [room for room in rooms if room.startswith(f"{top}/")]
        lines += (
            [f"  subgraph {top}", *(f"    {_node(room)}[{room.partition('/')[2]}]" for room in inside), "  end"]
            if inside
            else []
        )
        lines += [f"  {_node(room)}[{room}/]" for room in rooms if room == top]
    for room in rooms:
        lines += [
            f"  {_node(room)} <--> {_node(each)}" for each in sorted(graph[room]) if room < each and room in graph[each]
        ]
    for key, keys in sorted(below.items()):
        for each in sorted(keys):
            if not any(each in reached[other] for other in keys):
                first = min((room, other) for room in key for other in graph[room] if group[other] == each)
                lines.append(f"  {_node(first[0])} --> {_node(first[1])}")
    return "\n".join([*lines, "```"])


def _room(source: Source, module: str) -> str:
    """Returns the room of a module: a folder of a top folder, or a top folder drawn as one; "" for none."""
    parts = source.path(module).split("/")[:-1]
    if parts and parts[0] in DRAWN_AS_ONE:
        return parts[0]
    return "/".join(parts[:2]) if len(parts) > 1 else ""


def _node(room: str) -> str:
    return room.replace("/", "_")


def with_picture(page: str, drawn: str) -> str:
    """Returns a page with another picture between the two comments that enclose it."""
    return re.sub(
        r"(?s)(<!-- picture -->\n).*?(\n<!-- end of picture -->)", lambda found: found[1] + drawn + found[2], page
    )


def _top(module: str) -> str:
    return module.partition(".")[0]


def _module(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def main() -> None:
    """Prints the figures, or draws the picture."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.structure", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--picture", action="store_true", help="redraw the picture of docs/architecture.md")
    found = parser.parse_args()
    source = Source()
    if found.picture:
        PAGE.write_text(with_picture(PAGE.read_text(encoding="utf-8"), picture(source)), encoding="utf-8")
        return
    all_figures = figures(source)
    if found.json:
        print(
            json.dumps(
                {name: {"count": each.count, "places": each.places} for name, each in all_figures.items()}, indent=1
            )
        )
        return
    for name, each in all_figures.items():
        print(f"{name}: {each.count}")
        for place in each.places:
            print(f"    {place}")


if __name__ == "__main__":
    main()
