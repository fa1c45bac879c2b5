"""This machine: its CPU, what can run here, and the checks of `tlp-tvm doctor`."""
