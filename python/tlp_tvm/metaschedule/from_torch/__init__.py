"""Programs that torch exported, for TVM's importer."""
