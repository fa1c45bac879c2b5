"""How good a ranking is: numbers in, numbers out."""
