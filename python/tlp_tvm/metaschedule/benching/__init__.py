"""What `tlp-tvm bench` times of this framework."""
