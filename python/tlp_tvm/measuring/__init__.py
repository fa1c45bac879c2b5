"""Compiling and timing programs of any framework."""
