"""The GPUs of a host, for all its users: what they are, which a run may take, who has them, who waits for them."""
