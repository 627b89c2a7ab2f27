"""What every entry of the operator table says of itself."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from mirstack.dialects.relay.operator import all_operators

NAMES = sorted(all_operators())

HOSTS = (
    "tvm.apache.org",
    "numpy.org",
    "onnx.ai",
    "arxiv.org",
    "doi.org",
    "en.cppreference.com",
    "pytorch.org",
    "www.tensorflow.org",
)
"""Where the documents are that define operators."""


@pytest.mark.parametrize("name", NAMES)
def test_the_source_is_an_address(name: str):
    source = all_operators()[name].source
    assert source, f"{name} names no source: the document that says what it computes (see operators/sources.py)"
    parts = urlsplit(source)
    assert parts.scheme == "https" and parts.hostname in HOSTS and len(parts.path) > 1, source
    assert re.fullmatch(r"[\w:/.#()-]+", source), f"{source} has a place left open"


@pytest.mark.parametrize("name", NAMES)
def test_the_doc_is_a_sentence(name: str):
    doc = all_operators()[name].doc
    assert doc.endswith(".") and "\n" not in doc and len(doc) <= 200, doc


def test_arguments_are_named_once():
    for name, operator in all_operators().items():
        assert len(set(operator.arguments)) == len(operator.arguments), name
        assert len(operator.specs) == len(operator.attributes), name
