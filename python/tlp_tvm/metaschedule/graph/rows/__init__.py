"""Rows that no tile divides are made more."""
