"""The compiled folder and its manifest."""
