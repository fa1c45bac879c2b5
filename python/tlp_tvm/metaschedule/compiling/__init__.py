"""From a scheduled program to machine code."""
