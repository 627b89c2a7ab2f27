"""Caches results that are expensive to compute and safe to lose, as JSON: LALR tables and the like.

The folder is `$MIRSTACK_CACHE`, otherwise `mirstack` in `$XDG_CACHE_HOME` or `~/.cache`; `MIRSTACK_CACHE=off` does without.
Nothing read here is trusted to be well-formed, nothing is executed, and a folder that cannot be written only costs the time to
compute again. Some results are prebuilt and shipped with the package. Compiled code is kept by `lowering.driver.cache.store`, in
the same folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def is_off() -> bool:
    """Tells whether caching is off."""
    return os.environ.get("MIRSTACK_CACHE", "").lower() == "off"


def cache_folder() -> Path:
    """Returns the folder of cached files; it may not exist yet."""
    own = os.environ.get("MIRSTACK_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "mirstack"


def read_json(name: str) -> Any:
    """Returns the value stored under `name`, or None when there is none that can be read."""
    if is_off():
        return None
    try:
        return json.loads((cache_folder() / name).read_bytes())
    except (OSError, RuntimeError, ValueError):
        return None


def write_json(name: str, value: Any) -> None:
    """Stores a value under `name`, whole or not at all: others may write it at the same time."""
    if is_off():
        return
    # Here, since reading does not need it.
    import tempfile

    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=name)
        with os.fdopen(handle, "w") as file:
            json.dump(value, file, separators=(",", ":"))
        os.replace(temporary, folder / name)
    except (OSError, RuntimeError):
        return


def read_prebuilt(source: Path, digest: str) -> Any:
    """Reads the prebuilt JSON beside the file `source`; None unless it has this digest.

        grammar.lark  →  grammar.json

    `python -m mirstack.driver.prebuild` writes it.
    """
    try:
        stored = json.loads(source.with_suffix(".json").read_bytes())
        return stored["value"] if stored["digest"] == digest else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def prebuilt_text(digest: str, value: Mapping[str, Any]) -> str:
    """Returns the text of a file for `read_prebuilt`, a line for each element, so that diffs are small."""
    lines = [f"{json.dumps(key)}: {_lines(part)}" for key, part in value.items()]
    return f'{{"digest": {json.dumps(digest)}, "value": {{\n' + ",\n".join(lines) + "}}\n"


def _lines(value: Any) -> str:
    if not isinstance(value, list):
        return json.dumps(value)
    return "[\n" + ",\n".join(json.dumps(each, separators=(",", ":"), sort_keys=True) for each in value) + "]"  # pyright: ignore[reportUnknownVariableType]
