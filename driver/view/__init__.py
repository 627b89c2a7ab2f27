"""Makes a page of what a compilation does, for a browser: `mir-view`.

recording.py      lowers a program and keeps each step's text, line by line with the places in the source
graph.py          the Relay program as boxes, what is between two of them, why they are two
layout.py         where boxes stand: layers from top to bottom
memory.py         the tensors of each frame: bytes, offsets, from when to when
cost.py           FLOPs and bytes of each kernel, and its time where it was measured
page.py           all of it as one file: page.html, page.css, page.js and compressed data
"""
