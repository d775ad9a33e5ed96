"""Slow, obvious, high-precision references for the closed forms of the library."""
