"""Plain Python readings of what the native side does fast: slow, short, and independent of it."""
