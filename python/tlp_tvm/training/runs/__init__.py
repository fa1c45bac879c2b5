"""Complete training runs: a new model, an added platform, cross-validation."""
