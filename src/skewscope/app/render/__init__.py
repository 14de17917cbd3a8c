"""A Report in the forms that people and machines read."""
