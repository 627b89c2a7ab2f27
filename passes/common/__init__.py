"""Passes that hold for every dialect: they ask ops for their traits, never for their names."""
