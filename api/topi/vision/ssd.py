"""`topi.vision.ssd`: operators on boxes around points, which `topi.vision` has, too."""

from ..make import members

__getattr__, __dir__ = members(__name__, "vision.")
