"""Tuning a whole network with any framework."""
