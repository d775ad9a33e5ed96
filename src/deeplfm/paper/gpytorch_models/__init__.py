"""GPYTORCH MODELS: the modules inside the sparse and deep baselines.

Only here is GPyTorch imported at the top of a file, so the baselines import these files where a
model is fitted or read, and importing the baselines needs no GPyTorch.
"""
