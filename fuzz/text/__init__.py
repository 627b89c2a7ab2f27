"""Damaged texts of every format."""
