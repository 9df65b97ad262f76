"""The engine: hardware that evaluates trees from memories, several in parallel. An image is the content of the
memories."""
