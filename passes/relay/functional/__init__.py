"""Passes on Relay as a functional language: types, normal forms, closures, calls, evaluation."""
