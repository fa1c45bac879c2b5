"""MetaSchedule's traces and tuning records as primitive sequences."""
