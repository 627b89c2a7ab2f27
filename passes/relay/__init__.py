"""Passes from Relay to Relay; each file is one pass and is named as its `-p` name."""
