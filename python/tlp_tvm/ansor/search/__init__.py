"""Ansor's search with a TLP model."""
