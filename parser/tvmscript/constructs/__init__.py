"""The constructs of TVMScript, one function each, registered by name (see `registry`).

`types`, `values`, `calls` and `buffers` are read in expressions and definitions; `blocks` and `control` have statements in them.
"""
