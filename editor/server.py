"""Serves the requests of an editor about its texts, in the protocol's terms.

A request whose answer fails is answered by nothing, and logged: an unfinished text must not end the server.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import traceback
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TypeVar

from lsprotocol import types
from pygls import uris
from pygls.lsp.server import LanguageServer

from .analysis import Analysis, Analyzer, Finding
from .hover import hover
from .positions import Encoding, Lines

Params = TypeVar("Params")
Result = TypeVar("Result")

DELAY = 0.03
"""The seconds after a change without another one before the text is read."""

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "remark": types.DiagnosticSeverity.Information,
    "note": types.DiagnosticSeverity.Hint,
}


class Text:
    """An open text: its analysis, and the positions that its editor counts."""

    def __init__(self, uri: str):
        path = uris.to_fs_path(uri)
        self.analyzer = Analyzer(None if path is None else Path(path).parent)
        self.source: str | None = None
        self.analysis = Analysis("", [], [], [])
        self.lines = Lines("")
        self.timer: asyncio.TimerHandle | None = None


class MirServer(LanguageServer):
    """The texts that an editor has open."""

    def __init__(self) -> None:
        super().__init__("mir-lsp", metadata.version("mirstack"), types.TextDocumentSyncKind.Full)
        self.texts: dict[str, Text] = {}

    def text(self, uri: str) -> Text:
        """Returns an open text as it is now."""
        text = self.texts.setdefault(uri, Text(uri))
        source = self.workspace.get_text_document(uri).source
        if text.source != source:
            # First, so that a text whose reading fails is not read again for each request.
            text.source = source
            text.analysis = text.analyzer.analyse(source)
            text.lines = Lines(text.analysis.text, _encoding(self.workspace.position_encoding))
            for failure in text.analysis.failures:
                self.log(f"a part of {uri} could not be read", failure)
        return text

    def log(self, what: str, error: Exception) -> None:
        """Logs an exception that no rule of the text explains, in the editor."""
        trace = "".join(traceback.format_exception(error))
        self.window_log_message(
            types.LogMessageParams(
                types.MessageType.Error, f"mir-lsp: {what}; this is a bug of mirstack, please report it:\n{trace}"
            )
        )

    def changed(self, uri: str) -> None:
        """Reads a text soon, unless it changes again before."""
        text = self.texts.setdefault(uri, Text(uri))
        if text.timer is not None:
            text.timer.cancel()
        text.timer = asyncio.get_running_loop().call_later(DELAY, self.publish, uri)

    def publish(self, uri: str) -> None:
        """Sends the findings of a text."""
        try:
            text = self.text(uri)
            diagnostics = [_diagnostic(finding, text.lines, uri) for finding in text.analysis.findings]
            version = self.workspace.get_text_document(uri).version
        except Exception as error:
            self.log("a text could not be read", error)
            return
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, version))

    def closed(self, uri: str) -> None:
        """Forgets a text, and what was found in it."""
        text = self.texts.pop(uri, None)
        if text is not None and text.timer is not None:
            text.timer.cancel()
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))


def logged(
    answer: Callable[[MirServer, Params], Result],
) -> Callable[[MirServer, Params], Result | None]:
    """Wraps an answer so that an exception is logged and the answer is None."""

    @functools.wraps(answer)
    def wrapped(server: MirServer, params: Params) -> Result | None:
        try:
            return answer(server, params)
        except Exception as error:
            server.log(f"{answer.__name__.replace('_', ' ')} failed", error)
            return None

    return wrapped


def _encoding(chosen: object) -> Encoding:
    found = str(getattr(chosen, "value", chosen))
    return found if found in ("utf-8", "utf-32") else "utf-16"


def range_of(lines: Lines, start: int, end: int) -> types.Range:
    """Returns the range between two offsets."""
    return types.Range(types.Position(*lines.position(start)), types.Position(*lines.position(end)))


def _diagnostic(finding: Finding, lines: Lines, uri: str) -> types.Diagnostic:
    return types.Diagnostic(
        range_of(lines, finding.start, finding.end),
        finding.message,
        severity=_SEVERITIES[finding.severity],
        source="mirstack",
        related_information=[
            types.DiagnosticRelatedInformation(types.Location(uri, range_of(lines, note.start, note.end)), note.message)
            for note in finding.notes
        ],
    )


def _asked(server: MirServer, params: types.TextDocumentPositionParams) -> tuple[Text, int]:
    """Returns the text that a request is about, and the offset of its position."""
    text = server.text(params.text_document.uri)
    return text, text.lines.offset(params.position.line, params.position.character)


@logged
def open_text(server: MirServer, params: types.DidOpenTextDocumentParams) -> None:
    """Reads a text that the editor has opened."""
    server.changed(params.text_document.uri)


@logged
def change_text(server: MirServer, params: types.DidChangeTextDocumentParams) -> None:
    """Reads a text that has changed."""
    server.changed(params.text_document.uri)


@logged
def save_text(server: MirServer, params: types.DidSaveTextDocumentParams) -> None:
    """Reads a text again, since its side files may have changed."""
    text = server.texts.get(params.text_document.uri)
    if text is not None:
        text.source = None
    server.changed(params.text_document.uri)


@logged
def close_text(server: MirServer, params: types.DidCloseTextDocumentParams) -> None:
    """Forgets a text that the editor has closed."""
    server.closed(params.text_document.uri)


@logged
def show_hover(server: MirServer, params: types.HoverParams) -> types.Hover | None:
    """Describes what is under the cursor."""
    text, offset = _asked(server, params)
    found = hover(text.analysis, offset)
    if found is None:
        return None
    content = types.MarkupContent(types.MarkupKind.Markdown, found.text)
    return types.Hover(content, range_of(text.lines, found.start, found.end))


def make_server() -> MirServer:
    """Returns a server with all its features."""
    server = MirServer()
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(open_text)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(change_text)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(save_text)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(close_text)
    server.feature(types.TEXT_DOCUMENT_HOVER)(show_hover)
    return server


def serve() -> None:
    """Serves one editor on standard input and output, until it says `exit` or goes away."""
    # IR is made of many small objects, which a collection would visit again and again.
    gc.set_threshold(200_000, 20, 100)
    make_server().start_io()
