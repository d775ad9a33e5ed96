"""FUSED: sums of responses as single CUDA kernels, which keep no wave and no bump in memory.

The modules need Triton, which not every PyTorch brings along: import them where they are used.
"""
