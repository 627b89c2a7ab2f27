"""Operators on images: resizing, cropping, sampling at the points of a grid."""
