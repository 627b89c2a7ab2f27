"""Standard dialects to the `llvm` dialect: one walk composed of a table for each dialect."""
