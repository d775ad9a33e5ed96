"""Candidates that are compiled C, for a CPU and float32."""
