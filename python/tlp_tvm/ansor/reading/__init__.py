"""Ansor's states and measure records as primitive sequences."""
