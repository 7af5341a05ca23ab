"""What an operator has: a server's home, its processes, certificates, runs, schedule, checks and page."""
