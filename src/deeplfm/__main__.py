"""`python -m deeplfm` is the command `deeplfm`."""

from deeplfm.app.start import main

main()
