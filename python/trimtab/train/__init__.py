"""Training of policies: `python -m trimtab.train floo --help`."""
