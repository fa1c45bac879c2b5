"""Metrics of rankings: numbers in, numbers out."""
