"""What commands share, and parts of commands in files of their own."""
