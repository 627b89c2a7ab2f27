"""Writes the table of functions in docs/rules.md from the registry.

python docs/generate_rule_functions.py
"""

from __future__ import annotations

from pathlib import Path

from mirstack.dialects.rule.functions import FUNCTIONS, RuleFunction

PAGE = Path(__file__).with_name("rules.md")
COMMAND = "python docs/generate_rule_functions.py"
BEGIN, END = f"<!-- Written by `{COMMAND}`. -->\n", "<!-- End of the functions. -->\n"


def row(function: RuleFunction) -> str:
    """The line of one function."""
    arity = "any" if function.arity is None else str(function.arity)
    return f"| `{function.name}` | {arity} | {function.doc.replace('|', '&#124;')} |"


def table() -> str:
    """All functions, by name."""
    rows = [row(FUNCTIONS[name]) for name in sorted(FUNCTIONS)]
    return "\n".join(["| function | arguments | returns |", "| --- | --- | --- |", *rows]) + "\n"


def page(text: str) -> str:
    """The page with the table as it should be."""
    head, rest = text.split(BEGIN)
    return head + BEGIN + "\n" + table() + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
