"""Convolutions by Winograd's minimal filtering."""
