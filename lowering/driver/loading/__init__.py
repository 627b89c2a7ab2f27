"""Compiled programs loaded into this process: executables that Python calls with arrays."""
