"""The engine: hardware that evaluates trees from memories, several in parallel. Images fill these memories."""
