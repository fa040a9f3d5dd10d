"""Making runtime environments: what a driver uploads (packaging), what a worker does with it before it registers (setup, packages, pip)."""
