"""The `llvm` dialect as LLVM IR text."""
