"""What commands share, and parts of commands that stand in files of their own."""
