"""PAPER: experiments, baselines and data sets, for comparisons; users need none of them."""
