"""The start of the program: Ctrl-C while its parts are loaded ends it with a sentence.

Libraries answer an interrupt in the middle of their import in many ways, so until a command begins
its work the process ends on the spot: nothing is written before.
"""

import os
import signal
from types import FrameType

_SENTENCE = b"deeplfm: interrupted before anything was done\n"


def main() -> None:
    """The entry point."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not with nohup
        signal.signal(signal.SIGINT, _end)
    from deeplfm.app.cli import main as run

    run()


def interruptible() -> None:
    """What is needed is loaded: from here an interrupt is an exception, which the work can meet."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, _SENTENCE)
    os._exit(1)
