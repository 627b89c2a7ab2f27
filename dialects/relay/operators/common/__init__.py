"""What operators share: type relations, numpy meanings, TE computes, result sizes, layouts, gradients."""
