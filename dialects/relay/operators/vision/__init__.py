"""Operators of object detection: boxes, non-maximum suppression, regions of interest."""
