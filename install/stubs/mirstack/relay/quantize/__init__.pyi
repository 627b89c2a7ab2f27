"""`relay.quantize`: TVM's door to `mirstack.quantize` (docs/quantize.md).

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.quantize import QConfig as QConfig
from mirstack.api.relay.quantize import current_qconfig as current_qconfig
from mirstack.api.relay.quantize import qconfig as qconfig
from mirstack.api.relay.quantize import quantize as quantize
