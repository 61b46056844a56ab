"""Settings in the manner of torch.backends, and the door to XLA."""
