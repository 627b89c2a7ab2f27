"""Numbers with their noun, words with their article."""

import pytest
from mirstack.support.text import counted, with_article


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (1, "argument", "1 argument"),
        (0, "argument", "0 arguments"),
        (2, "type argument", "2 type arguments"),
        (3, "index", "3 indices"),
        (1, "index", "1 index"),
        (2, "reduction axis", "2 reduction axes"),
    ],
)
def test_counted(count: int, noun: str, text: str):
    assert counted(count, noun) == text


@pytest.mark.parametrize(
    ("word", "text"), [("int32", "an int32"), ("uint8", "a uint8"), ("float32", "a float32"), ("axis", "an axis")]
)
def test_with_article(word: str, text: str):
    assert with_article(word) == text
