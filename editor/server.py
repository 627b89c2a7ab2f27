"""Serves the requests of an editor about its texts, in the protocol's terms.

A request whose answer fails is answered by nothing, and logged: an unfinished text must not end the server.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import TypeVar

from lsprotocol import types
from pygls import uris
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from .analysis import Analysis, Analyzer, Finding
from .colors import KINDS, MODIFIERS, colors
from .complete import Completion, completions, described
from .fixes import Edit, fixes
from .hover import hover
from .navigation import CannotRename, definitions, references, rename, renameable
from .outline import folds
from .positions import Encoding, Lines, units

Params = TypeVar("Params")
Result = TypeVar("Result")

IDLE = 1.0
"""The seconds after the start in which the first texts are read, before all operators are imported."""
DELAY = 0.01
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
        except JsonRpcException:
            # A refusal, which the editor shows.
            raise
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
def prepare(server: MirServer, params: types.InitializedParams) -> None:
    """Imports soon what the first completion would wait for: the table of operators."""
    from ..dialects.relay.operator import all_operators

    asyncio.get_running_loop().call_later(IDLE, all_operators)


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


@logged
def complete(server: MirServer, params: types.CompletionParams) -> types.CompletionList:
    """Returns what may be written at the cursor."""
    text, offset = _asked(server, params)
    items = [_completion(each, text.lines, offset) for each in completions(text.analysis, offset)]
    return types.CompletionList(is_incomplete=False, items=items)


_COMPLETION_KINDS = {
    "function": types.CompletionItemKind.Function,
    "property": types.CompletionItemKind.Property,
    "keyword": types.CompletionItemKind.Keyword,
    "variable": types.CompletionItemKind.Variable,
    "method": types.CompletionItemKind.Method,
    "value": types.CompletionItemKind.Value,
    "snippet": types.CompletionItemKind.Snippet,
}


def _completion(completion: Completion, lines: Lines, offset: int) -> types.CompletionItem:
    return types.CompletionItem(
        completion.label,
        kind=_COMPLETION_KINDS[completion.kind],
        detail=completion.detail or None,
        text_edit=types.TextEdit(range_of(lines, completion.start, offset), completion.insert),
        data=None if completion.about is None else list(completion.about),
    )


@logged
def describe_completion(server: MirServer, item: types.CompletionItem) -> types.CompletionItem:
    """Adds the description of a completion that the editor shows."""
    if isinstance(item.data, list) and len(item.data) == 2:
        kind, name = item.data
        item.documentation = types.MarkupContent(types.MarkupKind.Markdown, described((str(kind), str(name))))
    return item


@logged
def go_to_definition(server: MirServer, params: types.DefinitionParams) -> list[types.Location]:
    """Returns where the name under the cursor is defined."""
    text, offset = _asked(server, params)
    uri = params.text_document.uri
    return [types.Location(uri, range_of(text.lines, s.start, s.end)) for s in definitions(text.analysis, offset)]


@logged
def find_references(server: MirServer, params: types.ReferenceParams) -> list[types.Location]:
    """Returns all places of the name under the cursor."""
    text, offset = _asked(server, params)
    return [
        types.Location(params.text_document.uri, range_of(text.lines, span.start, span.end))
        for span in references(text.analysis, offset)
        if params.context.include_declaration or not span.defines
    ]


@logged
def prepare_rename(server: MirServer, params: types.PrepareRenameParams) -> types.Range | None:
    """Returns the name under the cursor, where it can be renamed."""
    text, offset = _asked(server, params)
    span = renameable(text.analysis, offset)
    return None if span is None else range_of(text.lines, span.start, span.end)


@logged
def rename_all(server: MirServer, params: types.RenameParams) -> types.WorkspaceEdit:
    """Returns the edits that rename what is under the cursor. Raises JsonRpcInvalidParams."""
    text, offset = _asked(server, params)
    try:
        edits = rename(text.analysis, text.analyzer, offset, params.new_name)
    except CannotRename as error:
        raise JsonRpcInvalidParams(str(error)) from None
    return types.WorkspaceEdit({params.text_document.uri: _edits(text.lines, edits)})


def _edits(lines: Lines, edits: Sequence[Edit]) -> list[types.TextEdit]:
    return [types.TextEdit(range_of(lines, edit.start, edit.end), edit.text) for edit in edits]


@logged
def fix(server: MirServer, params: types.CodeActionParams) -> list[types.CodeAction]:
    """Returns the fixes of what is wrong in a range."""
    uri = params.text_document.uri
    text = server.text(uri)
    start = text.lines.offset(params.range.start.line, params.range.start.character)
    end = text.lines.offset(params.range.end.line, params.range.end.character)
    return [
        types.CodeAction(
            each.title,
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[_diagnostic(each.finding, text.lines, uri)],
            edit=types.WorkspaceEdit({uri: _edits(text.lines, each.edits)}),
        )
        for each in fixes(text.analysis, start, end)
    ]


@logged
def fold(server: MirServer, params: types.FoldingRangeParams) -> list[types.FoldingRange]:
    """Returns what can be folded."""
    found = folds(server.text(params.text_document.uri).analysis)
    kinds = {"region": types.FoldingRangeKind.Region, "comment": types.FoldingRangeKind.Comment}
    return [types.FoldingRange(each.first, each.last, kind=kinds[each.kind]) for each in found]


@logged
def color(server: MirServer, params: types.SemanticTokensParams) -> types.SemanticTokens:
    """Returns the kinds of all tokens, each by its distance from the one before."""
    text = server.text(params.text_document.uri)
    data: list[int] = []
    line = column = 0
    for each in colors(text.analysis):
        next_line, next_column = text.lines.position(each.start)
        width = units(text.analysis.text[each.start : each.end], text.lines.encoding)
        from_column = column if next_line == line else 0
        data += [next_line - line, next_column - from_column, width, KINDS.index(each.kind), int(each.declares)]
        line, column = next_line, next_column
    return types.SemanticTokens(data)


def make_server() -> MirServer:
    """Returns a server with all its features."""
    server = MirServer()
    server.feature(types.INITIALIZED)(prepare)
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(open_text)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(change_text)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(save_text)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(close_text)
    server.feature(types.TEXT_DOCUMENT_HOVER)(show_hover)
    options = types.CompletionOptions(trigger_characters=[".", "%", "@", '"'], resolve_provider=True)
    server.feature(types.TEXT_DOCUMENT_COMPLETION, options)(complete)
    server.feature(types.COMPLETION_ITEM_RESOLVE)(describe_completion)
    server.feature(types.TEXT_DOCUMENT_DEFINITION)(go_to_definition)
    server.feature(types.TEXT_DOCUMENT_REFERENCES)(find_references)
    server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)(prepare_rename)
    server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))(rename_all)
    kinds = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)(fix)
    server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)(fold)
    legend = types.SemanticTokensLegend(token_types=list(KINDS), token_modifiers=list(MODIFIERS))
    server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, legend)(color)
    return server


def serve() -> None:
    """Serves one editor on standard input and output, until it says `exit` or goes away."""
    # IR is made of many small objects, which a collection would visit again and again.
    gc.set_threshold(200_000, 20, 100)
    # What pygls logs are refusals, which the editor shows, and failures, which `MirServer.log` reports.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    # The server closes its streams in the end; and what is printed by mistake must not get between messages.
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    sys.stdout = sys.stderr
    make_server().start_io(requests, answers)
