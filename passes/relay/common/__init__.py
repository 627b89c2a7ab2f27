"""What passes on Relay share: function attributes, new operators, call graphs, purity, moved and copied bodies."""
