"""This machine: its processor, what can run here, and the checks that `tlp-tvm doctor` prints."""
