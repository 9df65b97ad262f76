"""The input model: a small file of counts and ranges. It replaces rows which may not be passed on."""
