"""What is done to a program for a CPU once it is loops over arrays of one axis, whichever TVM has it so."""
