"""Candidates made of torch's operations, for a CPU."""
