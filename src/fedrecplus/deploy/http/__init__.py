"""The server's HTTP side: workers without a state of their own, over the database. Any number of them may run."""
