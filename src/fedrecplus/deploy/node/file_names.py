"""Names of the files that a device's home has its key under."""

NODE_KEY, NODE_PUBLIC = "node.key", "node.pub"
