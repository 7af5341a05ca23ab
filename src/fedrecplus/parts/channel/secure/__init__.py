"""Secure sums: masks that cancel hide every upload, and the server learns the cohort's sums alone."""

VIEW = "sums"
