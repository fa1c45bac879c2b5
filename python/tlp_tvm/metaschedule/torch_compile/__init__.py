"""`torch.compile(model, backend="tlp_tvm")`: a graph of torch, scheduled by the model and run by TVM."""
