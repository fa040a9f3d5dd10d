"""Making runtime environments.

A driver uploads packages (packaging, submit); a worker uses them before it registers (setup,
packages, pip).
"""
