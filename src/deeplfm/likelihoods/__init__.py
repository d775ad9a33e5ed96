"""LIKELIHOODS: p(y | f), one class each."""

from deeplfm.likelihoods.additive import AdditiveNoise
from deeplfm.likelihoods.base import Likelihood
from deeplfm.likelihoods.gaussian import Gaussian
from deeplfm.likelihoods.student_t import StudentT

__all__ = ["AdditiveNoise", "Gaussian", "Likelihood", "StudentT"]
