"""Record files of any framework: finding them and recognising the framework."""
