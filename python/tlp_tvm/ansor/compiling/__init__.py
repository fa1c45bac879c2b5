"""How Ansor's programs become machine code, when they are measured and in a network."""
