"""Compiled code kept on disk: whole programs, kernels, and the arrays that compiling computed.

`store.py` is the folder of checked files, `keys.py` says what a key is made of, `programs.py` and `kernels.py` what is kept.
"""
