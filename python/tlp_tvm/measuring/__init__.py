"""Compiling and timing programs, whatever framework they are of."""
