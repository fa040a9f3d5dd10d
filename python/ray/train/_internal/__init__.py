"""Modules below this one have the private names by which packages ask for a session."""
