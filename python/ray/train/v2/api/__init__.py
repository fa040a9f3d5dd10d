"""The path under which programs import the base class of trainers."""
