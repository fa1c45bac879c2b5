"""Tuned networks, whatever framework tuned them: how much faster they are, and how they are kept and run."""
