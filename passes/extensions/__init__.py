"""Loads extensions: files of items, Python files, and packages that are installed.

What they define is kept in `support.extensions`, by kind and name, each with its origin.
"""
