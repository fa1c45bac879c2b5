"""What a task's own measurements add to what a model has learned before."""
