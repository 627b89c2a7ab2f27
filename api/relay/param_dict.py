"""`relay.param_dict`: weights by name as bytes."""

from __future__ import annotations

from ...support.public_names import public_names
from ..runtime.params import load_param_dict, save_param_dict

__all__ = ["load_param_dict", "save_param_dict"]


__dir__ = public_names(__name__)
