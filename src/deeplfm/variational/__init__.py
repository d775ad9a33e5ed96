"""VARIATIONAL: Gaussians, their divergences, and learnable quantities with bounds."""
