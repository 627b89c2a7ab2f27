"""`topi.image`: the operators of images on TE tensors."""

from ..make import members

__getattr__, __dir__ = members(__name__, "image.")
