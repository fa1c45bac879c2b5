"""Measured programs: from records to what training and evaluation read."""
