"""`python -m deeplfm` is the command `deeplfm`."""

from deeplfm.cli import main

main()
