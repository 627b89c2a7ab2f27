"""Writes the tables of docs/semantics.md from those that every target is tested by.

python docs/generate_semantics.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "semantics"))

from classes import CLASSES
from table import Array, Row, rows, wholes

PAGE = Path(__file__).with_name("semantics.md")
COMMAND = "python docs/generate_semantics.py"
MARK = f"<!-- What follows is written by `{COMMAND}` from tests/semantics; edit that instead. -->\n"


def number(value: float, dtype: str) -> str:
    """A number as the page shows it; those of integers by powers of two where they are long."""
    if dtype.startswith(("int", "uint")) and abs(value) > 1 << 20:
        for base, add in ((int(value), ""), (int(value) + 1, " - 1"), (int(value) - 1, " + 1")):
            if base and abs(base) & (abs(base) - 1) == 0:
                return f"{'-' if base < 0 else ''}2^{abs(base).bit_length() - 1}{add}"
    if dtype == "bool":
        return str(bool(value))
    return f"{value:.9g}" if not dtype.startswith(("int", "uint")) else str(int(value))


def cases(row: Row) -> str:
    """`-7, 2 → -4`, one after the other."""
    parts: list[str] = []
    for *given, result in zip(*row.inputs, row.expected, strict=True):
        shown = number(result, row.out)
        shown = "±0" if row.any_zero and result == 0 else shown
        parts.append(f"{', '.join(number(v, row.dtype) for v in given)} → {shown}")
    return "; ".join(parts)


def tensor(part: Array) -> str:
    """A tensor's numbers, rows in brackets."""
    if not part.values or len(part.shape) > 2:
        return f"{part.dtype}({', '.join(map(str, part.shape))})" + (
            f" {[number(v, part.dtype) for v in part.values]}".replace("'", "") if part.values else ""
        )
    shown = [number(v, part.dtype) for v in part.values]
    if not part.shape:
        return shown[0]
    width = part.shape[-1]
    lines = [f"[{', '.join(shown[k : k + width])}]" for k in range(0, len(shown), width)]
    return lines[0] if len(part.shape) == 1 else f"[{', '.join(lines)}]"


def elementwise(table: Sequence[Row]) -> Iterator[str]:
    """The rows of one number at a time, those of like dtypes together."""
    yield "| expression | dtypes | numbers |"
    yield "| --- | --- | --- |"
    known: dict[tuple[str, str], list[str]] = {}
    for row in table:
        dtypes = known.setdefault((row.text, cases(row)), [])
        if row.dtype not in dtypes:
            dtypes.append(row.dtype)
    for (text, shown), dtypes in known.items():
        yield f"| `{text}` | {', '.join(dtypes)} | {shown} |"


def page(text: str) -> str:
    """The page, its tables written anew."""
    parts = [text.partition(MARK)[0] + MARK, "## Elementwise\n", *elementwise(rows())]
    parts += ["\n## Whole tensors\n", "| expression | arguments | result |", "| --- | --- | --- |"]
    for row in wholes():
        parts.append(
            f"| `{row.text}` | {'; '.join(map(tensor, row.inputs))} | {'; '.join(map(tensor, row.expected))} |"
        )
    parts.append("\n## Classes of operators\n")
    for part in CLASSES:
        parts.append(f"**{part.title}.** {part.rule}\n{', '.join(f'`{name}`' for name in part.names())}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
