"""`contrib.cc`: object files linked to a shared library.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.contrib.cc import create_shared as create_shared
from mirstack.api.contrib.cc import get_cc as get_cc
