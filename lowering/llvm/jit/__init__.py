"""LLVM IR text to machine code that this process calls."""
