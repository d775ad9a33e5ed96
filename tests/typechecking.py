"""The run-time check of annotations: an int is accepted where a float is, as in typing."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
