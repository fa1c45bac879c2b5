"""Learning from a task's own measurements, on top of a trained model."""
