"""Passes that rewrite Relay operators by algebra: folding, combining, canonical forms."""
