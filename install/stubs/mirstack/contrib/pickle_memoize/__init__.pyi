"""`contrib.pickle_memoize`: results of functions, kept while the program runs, not on disk.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.contrib.pickle_memoize import memoize as memoize
