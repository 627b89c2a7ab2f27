"""`mir-lsp` as a client of an editor meets it: over standard input and output, in its own process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from extras import library

pytestmark = pytest.mark.extra
library("pygls", "lsp")

from lsprotocol import types  # noqa: E402
from pygls.lsp.client import LanguageClient  # noqa: E402

URI = "file:///nowhere/net.mir"
TEXT = """\
// 𝄞
def @f(%x: Tensor[(4), float32]) {
  /* 𝄞 */ %0 = nn.relu(%x);
  add(%0, %y)
}
"""


class Client(LanguageClient):
    """An editor with texts open."""

    def __init__(self) -> None:
        super().__init__("editor of a test", "1")
        self.published: asyncio.Queue[Any] = asyncio.Queue()
        self.logged: list[str] = []
        self.version = 1
        self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self.published.put_nowait(params))
        self.feature(types.WINDOW_LOG_MESSAGE)(lambda params: self.logged.append(params.message))

    async def open(self, text: str) -> list[types.Diagnostic]:
        self.text_document_did_open(
            types.DidOpenTextDocumentParams(types.TextDocumentItem(URI, "mir", self.version, text))
        )
        return await self.diagnostics()

    async def change(self, text: str) -> list[types.Diagnostic]:
        self.type(text)
        return await self.diagnostics()

    def type(self, text: str) -> None:
        self.version += 1
        self.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(uri=URI, version=self.version),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    async def diagnostics(self) -> list[types.Diagnostic]:
        """Waits for the findings of the version that was sent last."""
        while True:
            params = await asyncio.wait_for(self.published.get(), 60)
            if params.version == self.version:
                return list(params.diagnostics)


def in_session(talk: Callable[[Client], Awaitable[None]], encodings: list[str] | None = None) -> None:
    """Starts a server and a client, lets them talk, and ends both; nothing may be logged."""

    async def session() -> None:
        client = Client()
        await client.start_io(sys.executable, "-m", "mirstack.editor.mir_lsp", "--stdio")
        general = None if encodings is None else types.GeneralClientCapabilities(position_encodings=encodings)
        await client.initialize_async(
            types.InitializeParams(capabilities=types.ClientCapabilities(general=general), process_id=None)
        )
        client.initialized(types.InitializedParams())
        try:
            await talk(client)
            assert client.logged == []
        finally:
            await client.shutdown_async(None)
            client.exit(None)
            await client.stop()

    asyncio.run(session())


def test_diagnostics_and_hover() -> None:
    async def talk(client: Client) -> None:
        (wrong,) = await client.open(TEXT)
        assert wrong.message == "%y is not defined"
        assert wrong.range == types.Range(types.Position(3, 10), types.Position(3, 12))
        assert wrong.severity == types.DiagnosticSeverity.Error and wrong.source == "mirstack"
        assert await client.change(TEXT.replace("%y", "%x")) == []
        shown = await client.text_document_hover_async(
            types.HoverParams(types.TextDocumentIdentifier(URI), types.Position(2, 12))
        )
        # The character before counts as two units of UTF-16.
        assert shown is not None and shown.range == types.Range(types.Position(2, 11), types.Position(2, 13))
        assert isinstance(shown.contents, types.MarkupContent)
        assert shown.contents.value.startswith("```mir\n%0: Tensor[(4), float32]\n```")
        client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(URI)))

    in_session(talk)


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 13), ("utf-16", 11), ("utf-32", 10)])
def test_columns_are_those_of_the_client(encoding: str, column: int) -> None:
    async def talk(client: Client) -> None:
        await client.open(TEXT)
        shown = await client.text_document_hover_async(
            types.HoverParams(types.TextDocumentIdentifier(URI), types.Position(2, column))
        )
        assert shown is not None and shown.range is not None and shown.range.start.character == column

    in_session(talk, [encoding])


def test_notes_are_related_information() -> None:
    async def talk(client: Client) -> None:
        (wrong,) = await client.open(TEXT.replace("%x: ", "%y: Tensor[(5), float32], %x: "))
        assert wrong.message.endswith(
            "note: dimensions are aligned from the last; they must be equal, or one of them 1"
        )
        assert wrong.related_information is not None
        (note,) = wrong.related_information
        assert note.message == "argument 'rhs', of type Tensor[(5), float32], comes from here"
        assert note.location == types.Location(URI, types.Range(types.Position(1, 7), types.Position(1, 9)))

    in_session(talk)


def test_each_state_of_typing_is_answered() -> None:
    """A function typed character by character: the server lives, and logs nothing."""

    async def talk(client: Client) -> None:
        await client.open("")
        for end in range(0, len(TEXT), 3):
            client.type(TEXT[:end])
            await client.text_document_hover_async(
                types.HoverParams(types.TextDocumentIdentifier(URI), types.Position(99, 0))
            )
        assert await client.change(TEXT.replace("%y", "%x")) == []

    in_session(talk)


def test_failures_are_logged_and_the_server_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    from mirstack.editor import server as module

    def fails(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    server = module.make_server()
    logged: list[str] = []
    monkeypatch.setattr(module, "hover", fails)
    monkeypatch.setattr(module, "_asked", lambda *_: (server.texts.setdefault(URI, module.Text(URI)), 0))
    monkeypatch.setattr(server, "window_log_message", lambda params: logged.append(params.message))
    position = types.HoverParams(types.TextDocumentIdentifier(URI), types.Position(0, 0))
    assert module.show_hover(server, position) is None
    (message,) = logged
    assert message.startswith("mir-lsp: show hover failed; this is a bug of mirstack, please report it:")
    assert "ZeroDivisionError: a bug" in message


def test_a_server_without_an_editor_ends() -> None:
    done = subprocess.run([sys.executable, "-m", "mirstack.editor.mir_lsp"], input=b"", capture_output=True, timeout=60)
    assert done.returncode == 0 and done.stdout == b"" and b"Traceback" not in done.stderr
