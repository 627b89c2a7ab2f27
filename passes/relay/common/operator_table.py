"""Tables of facts about Relay's operators, stored as JSON beside the pass that reads them.

{"always": ["nn.dense", "nn.conv2d"], "never": ["exp"]}
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

_RELAY = Path(__file__).parents[1]


def read_table(file: str) -> dict[str, tuple[str, ...]]:
    """Reads the lists of operators of a file, counted from `passes/relay/`.

    Raises:
        ValueError: when a list has an operator twice.
    """
    table = cast("dict[str, list[str]]", json.loads((_RELAY / file).read_text(encoding="utf-8")))
    for key, names in table.items():
        if len(set(names)) < len(names):
            raise ValueError(f"{file}: an operator occurs twice under {key}")
    return {key: tuple(names) for key, names in table.items()}
