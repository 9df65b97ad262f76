"""The input model: a small file that stands for the rows where those can't travel. It holds counts and ranges."""
