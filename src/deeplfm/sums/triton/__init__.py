"""Candidates for CUDA; imported where they are used: not every PyTorch brings Triton."""
