"""The input model: a small file of counts and ranges that stands for rows, for use where the rows can't travel."""
