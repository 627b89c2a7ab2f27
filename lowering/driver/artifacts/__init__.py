"""Writes compiled programs to files: packages, libraries for C, object files, text."""
