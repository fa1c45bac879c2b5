"""Traces bred natively, by the thousand, before TVM sees one."""
