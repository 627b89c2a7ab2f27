"""`mirstack.contrib`: `graph_executor` and `pickle_memoize`, by TVM's names.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.contrib import graph_executor as graph_executor
from mirstack.contrib import pickle_memoize as pickle_memoize
