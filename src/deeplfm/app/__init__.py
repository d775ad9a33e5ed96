"""APP: the command line, the folders of runs, the demonstration."""
