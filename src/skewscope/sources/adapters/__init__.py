"""Live sources: what they fetch is read by the same formats as files are."""
