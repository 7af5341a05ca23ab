"""The privacy audit: record what a curious server sees, attack it, and score the guesses against the truth."""
