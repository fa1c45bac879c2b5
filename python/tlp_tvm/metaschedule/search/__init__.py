"""MetaSchedule's search with a TLP model."""
