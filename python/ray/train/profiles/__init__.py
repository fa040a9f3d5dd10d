"""Profiles of training runs: torch's traces of all ranks as one, with a summary in words.

A README beside this file says which module does what.
"""
