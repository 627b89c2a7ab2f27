"""Shows text in notebooks, as `_repr_html_` of what is displayed there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def text_html(text: str) -> str:
    """Returns a text as it stands, in a font of fixed width."""
    return f"<pre>{escape(text)}</pre>"


def table_html(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Returns a table under a title."""
    head = "".join(f"<th>{escape(each)}</th>" for each in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(each))}</td>' for each in row)}</tr>" for row in rows)
    return f"<table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
