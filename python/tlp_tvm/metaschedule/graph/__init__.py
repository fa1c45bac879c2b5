"""From a Relax network as it comes to one that MetaSchedule is good at, split into fused functions."""
