"""Statistics of a built dataset."""
