"""Networks, their tasks, and the libraries they become, in Relax."""
