"""The command line of `mir-lsp`, for which no extra is needed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest
from mirstack.editor.mir_lsp import main


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main([]) == 2
    assert (
        capsys.readouterr().err
        == "mir-lsp: error: the package pygls is not installed; pip install 'mirstack[lsp]' installs it\n"
    )


def test_a_mistyped_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--stdo"])
    assert ended.value.code == 2
    assert "unrecognized arguments: --stdo; did you mean '--stdio'?" in capsys.readouterr().err


def test_features_need_no_protocol() -> None:
    """What the server knows of a text is imported without the optional package."""
    program = (
        "import sys; from mirstack.editor import analysis, hover; hover.hover(analysis.Analyzer().analyse('def @f() {'), 1);"
        " print([name for name in ('pygls', 'lsprotocol') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"
