"""`mirstack.contrib`: `graph_executor`, by TVM's name.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.contrib import graph_executor as graph_executor
