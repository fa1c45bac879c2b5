"""A tuned network beside what users run today: ONNX Runtime, OpenVINO, TorchScript, torch.compile."""
