"""Compiled kernels for the CPU, with the signatures of their counterparts in `fused`."""
