"""From xDSL's standard dialects to the `llvm` dialect, to LLVM IR, to native code that Python calls."""
