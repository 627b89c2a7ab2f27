"""Relay to native code: operators to TE functions, and the functions around them to LLVM functions over an arena."""
