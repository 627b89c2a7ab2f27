"""The operator table, by topic; a topic is imported when one of its operators is first asked for."""

from __future__ import annotations

from importlib import import_module

TOPICS: dict[str, tuple[str, ...]] = {}
"""Module of this package → names of the operators that it registers."""

_TOPIC_OF: dict[str, str] = {}


def load(name: str) -> None:
    """Imports the topic that holds the operator `name`; nothing for an unknown name."""
    if not _TOPIC_OF:
        _TOPIC_OF.update({operator: topic for topic, operators in TOPICS.items() for operator in operators})
    topic = _TOPIC_OF.get(name)
    if topic is not None:
        import_module(f"{__name__}.{topic}")


def load_all() -> None:
    """Imports every topic."""
    for topic in TOPICS:
        import_module(f"{__name__}.{topic}")
