"""Few labels of a platform: recipes, and the choice of programs to label."""
