"""Uses of every Relay operator: attributes and arguments drawn at random, references in numpy, programs made of them."""
