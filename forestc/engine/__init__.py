"""The engine: hardware that evaluates trees from memories, with several walkers in parallel. Images fill the memories."""
