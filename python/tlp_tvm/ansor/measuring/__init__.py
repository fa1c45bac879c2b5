"""Compiling and timing Ansor's programs, here and on other machines."""
