"""Elementary functions as straight-line code that LLVM vectorizes."""
