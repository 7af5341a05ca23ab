"""Features that item similarity is measured on: a file is a choice."""
