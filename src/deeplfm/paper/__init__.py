"""PAPER: what compares: experiments, baselines and data sets. Users need none of it."""
