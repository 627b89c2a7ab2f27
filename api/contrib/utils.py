"""`contrib.utils`: folders for the time of a program."""

from __future__ import annotations

from os import PathLike, listdir
from pathlib import Path
from tempfile import TemporaryDirectory

from ...support.public_names import public_names

__all__ = ["TempDirectory", "tempdir"]


class TempDirectory:
    """A folder that is removed with its last reference, or by `remove`; one that was given stays.

    folder = tempdir(); library.export_library(folder.relpath("net.so"))
    """

    def __init__(self, custom_path: str | PathLike[str] | None = None):
        self._own = TemporaryDirectory() if custom_path is None else None
        self.temp_dir = str(custom_path) if self._own is None else self._own.name
        Path(self.temp_dir).mkdir(parents=True, exist_ok=True)

    @property
    def path(self) -> str:
        """The path of the folder."""
        return self.temp_dir

    def relpath(self, name: str) -> str:
        """Returns the path of a file in the folder."""
        return str(Path(self.temp_dir, name))

    def listdir(self) -> list[str]:
        """Returns the names of the files in the folder."""
        return listdir(self.temp_dir)

    def remove(self) -> None:
        """Removes the folder with its files, unless it was given."""
        if self._own is not None:
            self._own.cleanup()

    def __truediv__(self, name: str) -> Path:
        return Path(self.temp_dir, name)

    def __repr__(self) -> str:
        return f"TempDirectory({self.temp_dir!r})"


def tempdir(custom_path: str | PathLike[str] | None = None, keep_for_debug: bool = False) -> TempDirectory:
    """Returns a new folder, or the one given. `keep_for_debug` keeps it, and prints where it is."""
    if keep_for_debug and custom_path is None:
        from tempfile import mkdtemp

        custom_path = mkdtemp()
        print(custom_path)
    return TempDirectory(custom_path)


__dir__ = public_names(__name__)
