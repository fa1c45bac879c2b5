"""From records to a built dataset."""
