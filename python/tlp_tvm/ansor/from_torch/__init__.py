"""TorchScript for TVM's importer, which ended before torch did."""
