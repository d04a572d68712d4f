"""A memory per destination: what the next connection to it starts with."""
