"""A loaded network made into one that Ansor is good at: the passes, and the operators that TVM lacks."""
