"""REGRESSOR: the scikit-learn door, fitting, fitted models, and their files."""
