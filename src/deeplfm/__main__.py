"""`python -m deeplfm` is the command `deeplfm`."""

from deeplfm.app.cli import main

main()
