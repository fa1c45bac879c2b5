"""Boosted trees that judge programs which TVM has lowered."""
