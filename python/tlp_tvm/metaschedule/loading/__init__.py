"""Finding and loading a TVM with MetaSchedule."""
