"""Reads attribute values in Relay text: `axis=1`, `padding=[1, 1]`, `dtype="int8"`."""

from __future__ import annotations

from ...dialects.relay.operator import AttrValue
from .constants import ConstantError, number_of
from .metadata import NODE
from .reader import RelayReader, unquote


class _Argument:
    """A copy of an argument that TVM keeps in an attribute, `start=meta[relay.Var][0]`; it is ignored."""


ARGUMENT_COPY = _Argument()


class ValueReader(RelayReader):
    """The rules of attribute values; each returns the value in Python."""

    def on_number_value(self, token: int) -> AttrValue:
        text = self.texts[token]
        digits = text.lstrip("-")
        if digits.isdecimal() and len(digits) < 20:
            return int(text)
        try:
            return number_of(text)[0]
        except ConstantError as error:
            self.error(token, error.message, *error.notes)
            return 0

    def on_string_value(self, token: int) -> AttrValue:
        return unquote(self.texts[token])

    def on_true_value(self, _: int) -> AttrValue:
        return True

    def on_false_value(self, _: int) -> AttrValue:
        return False

    def on_none_value(self, _: int) -> AttrValue:
        return None

    def on_name_value(self, token: int) -> AttrValue:
        return self.texts[token]

    def on_list_value(self, _: int, values: object, __: int) -> object:
        return values

    def on_dict_value(self, _: int, entries: object, __: int) -> object:
        return entries

    def on_node_value(self, name: int, _: int, entries: dict[str, AttrValue], __: int) -> AttrValue:
        return {NODE: self.texts[name], **entries}

    def on_meta_value(self, meta: int, _: int, name: int, *rest: object) -> object:
        return self.meta_value(meta, self.texts[name], rest[2])  # type: ignore[arg-type]

    def meta_value(self, token: int, key: str, index: int) -> object:
        """The value of `meta[key][index]` in an attribute."""
        text = self.texts[index]
        if key == "relay.Constant" or (key.startswith("relay.") and not key.startswith("relay.attrs.")):
            return ARGUMENT_COPY
        try:
            if not text.isdecimal() or len(text) > 9:
                raise ValueError(f"'{text}' is no index")
            return {NODE: key, **self.metadata.attributes(key, int(text))}
        except ValueError as error:
            self.error(token, f"meta[{key}][{text}] cannot be read: {error}")
            return {NODE: key}

    def on_meta_key(self, token: int) -> int:
        return token

    def on_values(self, *args: object) -> object:
        return args[0] if args else []

    def on_value_list(self, *args: object) -> object:
        if len(args) == 1:
            return [args[0]]
        args[0].append(args[2])  # type: ignore[attr-defined]
        return args[0]

    def on_entries(self, *args: object) -> object:
        return args[0] if args else {}

    def on_entry_list(self, *args: object) -> object:
        if len(args) == 1:
            return dict([args[0]])  # type: ignore[list-item]
        key, value = args[2]  # type: ignore[misc]
        args[0][key] = value  # type: ignore[index]
        return args[0]

    def on_entry(self, key: int, value: object) -> tuple[str, object]:
        return self.key_at(key), value

    def on_dict_entries(self, *args: object) -> object:
        return args[0] if args else {}

    def on_dict_list(self, *args: object) -> object:
        return self.on_entry_list(*args)

    def on_dict_entry(self, key: int, _: int, value: object) -> tuple[str, object]:
        return unquote(self.texts[key]), value

    def key_at(self, token: int) -> str:
        """The name that a KEY token (`axis=`) writes."""
        return self.texts[token][:-1].rstrip()
