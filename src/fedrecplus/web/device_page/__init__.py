"""The person's page over their device's own store, on 127.0.0.1 and for whoever has the link."""
