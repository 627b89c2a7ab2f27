"""Operators as values: `Op.get("nn.dense")`.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.ir.op import Op as Op
from mirstack.api.ir.op import OpEntry as OpEntry
from mirstack.api.ir.op import get as get
from mirstack.api.ir.op import plain as plain
