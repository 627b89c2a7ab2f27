"""`TempOpAttr`: an attribute of an operator for the duration of a `with`."""

from __future__ import annotations

from typing import Any

from ....support.public_names import public_names
from ...ir.op import Op
from ...ir.op_attrs import op_attr, register_op_attr, reset_op_attr


class TempOpAttr:
    """Gives an operator an attribute inside of `with TempOpAttr("nn.conv2d", "FTVMLegalize", rule):`."""

    def __init__(self, op_name: str, attr_key: str, attr_value: Any):
        self.op = Op.get(op_name)
        self.attr_key = attr_key
        self.attr_value = attr_value
        self._before: Any = None

    def __repr__(self) -> str:
        return f"TempOpAttr({self.op.name!r}, {self.attr_key!r})"

    def __enter__(self) -> TempOpAttr:
        self._before = op_attr(self.op.name, self.attr_key)
        reset_op_attr(self.op.name, self.attr_key)
        register_op_attr(self.op.name, self.attr_key, self.attr_value)
        return self

    def __exit__(self, *_: object) -> None:
        reset_op_attr(self.op.name, self.attr_key)
        if self._before is not None:
            register_op_attr(self.op.name, self.attr_key, self._before)


__all__ = ["TempOpAttr"]


__dir__ = public_names(__name__)
