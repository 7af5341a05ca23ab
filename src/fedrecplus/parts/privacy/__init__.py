"""Differential privacy: who adds the noise."""
