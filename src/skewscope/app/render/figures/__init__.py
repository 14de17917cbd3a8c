"""Geometry of the figures on the page: from a Report to positions, no markup."""
