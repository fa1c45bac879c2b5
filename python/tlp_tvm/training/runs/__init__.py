"""Whole training runs: of a new model, of another platform, and cross-validation."""
