"""Attacks: what users hand in by mistake, and the files of runs; all of them with `--large`."""
