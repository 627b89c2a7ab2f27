"""Writes the table of docs/from-tvm.md: which of TVM's public names mirstack has.

python docs/generate_from_tvm.py

`tvm_names.json` lists the names of TVM 0.16's documentation by module.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import mirstack
from mirstack.api.no_attribute import not_wanted

PAGE = Path(__file__).with_name("from-tvm.md")
NAMES = Path(__file__).with_name("tvm_names.json")
COMMAND = "python docs/generate_from_tvm.py"
START, END = f"<!-- Written by `{COMMAND}`. -->", "<!-- end of the table -->"
INSTANCES = {
    "tir.Schedule": "its methods are found by name",
    "contrib.graph_executor.GraphModule": "",
}
"""Classes whose members only an object shows."""


def members(module: str) -> set[str]:
    """Returns the public names of a module or class of mirstack, written without the package's name."""
    found = _find(module)
    if found is None:
        return set()
    if module == "tir.Schedule":
        from mirstack.passes.schedule.engine.primitive import names

        return {*dir(found), *names(), "mod", "trace", "state"}
    return {*dir(found), *getattr(found, "__annotations__", {})}


def _find(module: str) -> Any:
    found: Any = mirstack
    for part in filter(None, module.split(".")):
        found = getattr(found, part, None)
        if found is None:
            try:
                return import_module(f"mirstack.{module}")
            except ImportError:
                return None
    return found


def has(module: str, name: str, known: set[str]) -> bool:
    """Returns whether mirstack has a name."""
    return name in known or hasattr(_find(module), name)


def gaps() -> Iterator[tuple[str, list[str], list[str]]]:
    """Yields each module with TVM's names that mirstack has, and those that it has not and that no list explains."""
    names: Mapping[str, list[str]] = json.loads(NAMES.read_text())
    unwanted = {(group.module, name) for group in not_wanted() for name in group.names}
    for shown, listed in names.items():
        module = shown.removeprefix("tvm").removeprefix(".")
        known = members(module)
        there = [name for name in listed if has(module, name, known)]
        yield module, there, [n for n in listed if n not in there and (module, n) not in unwanted]


def table() -> str:
    """Returns the tables: the names that are there, those that are missing, and what to use instead of others."""
    rows = list(gaps())
    total = sum(len(there) for _, there, _ in rows)
    lines = [f"{total} names are there:", "", "| module | names | missing |", "| --- | --- | --- |"]
    for module, there, missing in rows:
        shown = ", ".join(f"`{name}`" for name in missing) or "-"
        lines.append(f"| `{_full(module)}` | {len(there)} | {shown} |")
    lines += ["", "These are not wanted:", "", "| module | names | instead |", "| --- | --- | --- |"]
    for module, names, instead in not_wanted():
        lines.append(f"| `{_full(module)}` | {', '.join(f'`{name}`' for name in names)} | {instead} |")
    return "\n".join(lines)


def _full(module: str) -> str:
    return f"mirstack.{module}" if module else "mirstack"


def page(text: str) -> str:
    """Returns the page with its table as it is now."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n{table()}\n{END}{after}"


def main() -> None:
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
