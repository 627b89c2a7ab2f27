"""Writes the results into the README: each table goes between its two markers."""

from __future__ import annotations

import re
from pathlib import Path

from .results import Results
from .setting import SETTINGS
from .tables import conditions, costs, problems, summary, timings
from .workloads import FAMILIES

README = Path(__file__).parents[1] / "README.md"


def sections(results: Results) -> dict[str, str]:
    """The text of each marked section by its name; one without results is empty."""
    found = {"conditions": conditions(results), "costs": costs(results)}
    for setting in SETTINGS:
        found[f"summary-{setting.key}"] = summary(results, setting)
        found[f"problems-{setting.key}"] = problems(results, setting)
        for family in FAMILIES:
            found[f"{family}-{setting.key}"] = timings(results, setting, (family,))
    return found


def written(text: str, found: dict[str, str]) -> str:
    """Returns the README's text with each marked section replaced.

    Raises ValueError for a marker whose section the results lack.
    """

    def replaced(match: re.Match[str]) -> str:
        name = match[1]
        if name not in found:
            raise ValueError(f"the README has a section '{name}' that is not written; there are {', '.join(found)}")
        body = f"{found[name]}\n\n" if found[name] else ""
        return f"<!-- compare: {name} -->\n\n{body}<!-- end -->"

    return re.sub(r"<!-- compare: ([\w-]+) -->\n.*?<!-- end -->", replaced, text, flags=re.DOTALL)


def write(results: Results, path: Path = README) -> None:
    """Refreshes the file."""
    path.write_text(written(path.read_text(encoding="utf-8"), sections(results)), encoding="utf-8")
