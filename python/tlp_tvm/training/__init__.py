"""Training: from a measured dataset to a checkpoint."""
