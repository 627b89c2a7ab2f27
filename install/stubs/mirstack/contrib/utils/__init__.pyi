"""`contrib.utils`: folders for the time of a program.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.contrib.utils import TempDirectory as TempDirectory
from mirstack.api.contrib.utils import tempdir as tempdir
