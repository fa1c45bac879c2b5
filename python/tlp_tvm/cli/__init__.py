"""The command line: one file a command, gathered in `app`."""
