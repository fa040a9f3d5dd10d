"""Modules below this one have the names by which packages import the client of jobs."""
