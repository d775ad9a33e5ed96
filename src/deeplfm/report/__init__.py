"""REPORT: one self-contained HTML page per fitted model, for people to look at."""
