"""A stored job's figures, computed once more: numpy alone, from docs/formats.md and the formulas'
sources."""
