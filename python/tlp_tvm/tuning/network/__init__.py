"""The whole network after its tuning: timed beside the untuned one, by operator, and as a library."""
