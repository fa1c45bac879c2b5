"""From a built dataset, or records, to the programs that training and evaluation read."""
