"""Compiling and timing MetaSchedule's programs."""
