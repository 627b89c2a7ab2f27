"""Runs the commands of one test by lit, as configured where the test is found."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ...support.diagnostics import Diagnostic, MirError, error_at, file_loc
from .run_lines import Run


class LitTest:
    """A test with lit's settings. lit has no types."""

    def __init__(self, test: Any, settings: Any):
        self._test = test
        self._settings = settings
        self._runner: Any = import_module("lit.TestRunner")
        self.path = Path(test.getSourcePath())
        here = Path.cwd()
        self.name = str(self.path.relative_to(here) if self.path.is_relative_to(here) else self.path)
        """The file as messages name it."""
        self.folder = Path(test.getExecPath()).parent
        """The folder that the test's commands run in, and that holds what they write."""

    def output(self, run: Run) -> str:
        """Returns what a RUN line's command prints. Raises MirError where it fails, or has nothing to check."""
        runner, test = self._runner, self._test
        folder, base = runner.getTempPaths(test)
        Path(folder).mkdir(parents=True, exist_ok=True)
        printed = Path(f"{base}.printed")
        script = runner.applySubstitutions(
            [f"{run.command} | cat > {printed}"],
            runner.getDefaultSubstitutions(test, folder, base),
            {feature: True for feature in test.config.available_features},
            recursion_limit=test.config.recursiveExpansionLimit,
        )
        where = file_loc(self.name, run.line, 1)
        try:
            result = runner.executeScriptInternal(test, self._settings, base, script, str(self.folder))
        except runner.ScriptFatal:
            raise error_at(
                where,
                "lit's shell cannot read this command",
                "it knows pipes, &&, ||, ; and redirections; quotations end in their line",
            ) from None
        if result[2] != 0:
            message = f"this command ends with exit code {result[2]}"
            raise MirError(Diagnostic(message, where).with_note(_last_lines(result[0])))
        text = printed.read_text(encoding="utf-8", errors="replace")
        if run.prefixes and not text.strip():
            raise error_at(where, "this command prints nothing that could be checked")
        return text

    def check(self) -> None:
        """Runs the test. Raises MirError where it does not pass."""
        result = self._test.config.test_format.execute(self._test, self._settings)
        if result.code.isFailure:
            raise error_at(
                file_loc(self.name, 1, 1),
                "the test does not pass with the checks of its own output: it prints something else each time",
                _last_lines(result.output),
            )


def find_tests(paths: Sequence[str], progname: str) -> Iterator[LitTest]:
    """Yields the tests at paths, with the settings that lit's command makes when it has no options."""
    made: Any = import_module("lit.LitConfig").LitConfig
    known: dict[str, Any] = {
        "progname": progname,
        "path": [],
        "quiet": False,
        "diagnostic_level": "note",
        "useValgrind": False,
        "valgrindLeakCheck": False,
        "valgrindArgs": [],
        "noExecute": False,
        "debug": False,
        "isWindows": False,
        "order": "smart",
        "params": {},
    }
    # Their names differ between lit's versions.
    settings = made(**{name: known[name] for name in inspect.signature(made).parameters if name in known})
    for test in import_module("lit.discovery").find_tests_for_inputs(settings, list(paths)):
        yield LitTest(test, settings)


def _last_lines(log: str) -> str:
    lines = [line.removeprefix("# | ") for line in log.splitlines() if line.startswith("# | ")]
    return "it says: " + "\n".join(lines[:20] or log.splitlines()[-5:])
