"""What the server gets to see of a cohort's uploads."""
