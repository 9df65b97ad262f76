"""The engine: hardware with walkers over memories of nodes. Images fill these memories at run time."""
