"""What is in a built dataset."""
