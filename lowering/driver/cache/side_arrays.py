"""Reads and hashes the arrays of a text's side files in a thread, while modules are imported."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ....dialects.array_box import ArrayBox
    from ..source import SourceText

_SIDE_FILE = re.compile(r'constants\s*=\s*"([^"\n]+)"')


class SideArrays:
    """The arrays of the side files that a text may name; reading begins at once, in a thread."""

    def __init__(self, source: SourceText):
        self._source = source
        self._found: tuple[list[str], list[ArrayBox]] | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._read, name="mirstack-weights", daemon=True)
        self._thread.start()

    def join(self) -> tuple[Sequence[str], Sequence[ArrayBox]] | None:
        """Returns the names in each file, as text, and the arrays; None where a file cannot be read."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._found

    def _read(self) -> None:
        try:
            self._found = self._arrays()
        except (OSError, ValueError):
            self._found = None
        except BaseException as error:
            self._failure = error

    def _arrays(self) -> tuple[list[str], list[ArrayBox]]:
        listed: list[str] = []
        boxes: list[ArrayBox] = []
        for side in sorted(set(_SIDE_FILE.findall(self._source.text))):
            path = None if self._source.directory is None else self._source.directory / side
            if path is None or not path.is_file():
                continue
            # Here, since a text without side files needs neither.
            from ....dialects.array_box import ArrayBox
            from ....dialects.side_file import SideFile

            file = SideFile(path)
            names = list(file.names())
            for name in names:
                box = ArrayBox(file.array(name))
                # Hashed while it is still in the processor's cache.
                _ = box.digest
                boxes.append(box)
            listed.append(json.dumps([side, names]))
        return listed, boxes
