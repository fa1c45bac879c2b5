"""Files of measured programs of any framework: finding them, and telling whose they are."""
