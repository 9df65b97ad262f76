"""Layouts of an integer forest in memory, for the C backend and programs that walk trees: plain tables, no C."""
