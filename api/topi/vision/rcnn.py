"""`topi.vision.rcnn`: operators on regions of interest, which `topi.vision` has, too."""

from ..make import members

__getattr__, __dir__ = members(__name__, "vision.")
