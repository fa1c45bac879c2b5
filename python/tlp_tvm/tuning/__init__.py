"""Tuning a whole network, whatever framework searches."""
