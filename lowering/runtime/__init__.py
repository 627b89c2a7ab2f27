"""The compiled runtime: threads and memory for code that mirstack made."""
