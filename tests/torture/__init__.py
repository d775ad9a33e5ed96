"""Attacks: what users hand in by mistake. Small here, large with `pytest tests/torture --large`."""
