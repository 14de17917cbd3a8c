"""Fuzz targets for everything that reads bytes from outside, and the command that runs them."""
