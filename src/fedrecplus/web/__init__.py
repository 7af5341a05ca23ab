"""What people open in a browser: the report of runs and studies, the person's page, the service."""
