"""FUSED: the fast paths of sums of responses, by device; none of them keeps a wave or a bump.

On a CPU they come from tables. On CUDA they are single Triton kernels (`triton_*`), which are
imported where they are used: not every PyTorch brings Triton along.
"""
