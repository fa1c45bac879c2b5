"""Models that come with the package: a folder each, with its card (CARD.md)."""

DEFAULT_MODELS = {"ansor": "epyc", "metaschedule": "epyc-metaschedule"}
"""Framework -> the model that a search takes where none is named."""
