"""A latent force and its ODE as a Markov state: its blocks, and its paths as functions of time."""
