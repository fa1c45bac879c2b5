"""Throughput beside the alternatives, in one run; the command line prints what these modules measure."""
