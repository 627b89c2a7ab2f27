"""Shared parts of the passes on Relay: attributes, operator tables, call graphs, purity, edits."""
