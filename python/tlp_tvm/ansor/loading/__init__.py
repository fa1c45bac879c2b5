"""Finding and loading a TVM with Ansor, and checking that it is read correctly."""
