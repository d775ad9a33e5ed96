"""Attacks on the files of runs."""
