"""What models choose when nobody measures for them: bred by each alone, timed beside the best."""
