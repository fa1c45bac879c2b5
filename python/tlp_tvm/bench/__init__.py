"""Throughput, beside the alternatives in the same run; `tlp-tvm bench` prints the results."""
