"""The input model: a small file of counts and ranges that replaces the rows where they can't travel."""
