"""Few labels of a platform: what recipes make of them, and which programs to label."""
