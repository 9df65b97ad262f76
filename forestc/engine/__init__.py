"""The engine: walkers over memories of nodes, which images fill at run time."""
