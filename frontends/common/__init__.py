"""Builds Relay functions for every importer, and knows sizes while a function is built."""
