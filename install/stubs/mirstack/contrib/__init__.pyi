"""`mirstack.contrib`: `cc`, `graph_executor`, `pickle_memoize` and `utils`, by TVM's names.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.contrib import cc as cc
from mirstack.contrib import graph_executor as graph_executor
from mirstack.contrib import pickle_memoize as pickle_memoize
from mirstack.contrib import utils as utils
