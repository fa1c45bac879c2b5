"""Evaluation of rankings: top-k, rank correlation, and the level of chance."""
