"""What every layer stands on: diagnostics with carets, locations, deep recursion."""
