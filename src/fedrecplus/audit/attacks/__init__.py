"""Attacks on what a server sees: a file is a choice. They may import nothing that knows the truth."""
