"""The person's page: a static site that rates, recommends and shows what would leave, all in the browser."""
