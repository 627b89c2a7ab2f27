"""The ground floor of every layer: diagnostics with carets, locations, edits and walks of IR."""
