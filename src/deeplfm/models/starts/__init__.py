"""STARTS: where a model begins: closed-form fits and spectra of the data."""
