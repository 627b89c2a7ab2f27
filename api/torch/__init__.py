"""`torch.compile(model, backend="mirstack")`."""
