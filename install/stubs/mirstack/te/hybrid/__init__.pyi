"""`te.hybrid.script`: tensors described by loops, in a subset of Python whose source is parsed.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.te.hybrid import Captured as Captured
from mirstack.api.te.hybrid import Script as Script
from mirstack.api.te.hybrid import script as script
