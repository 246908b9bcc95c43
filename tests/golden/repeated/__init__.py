"""A training from docs/reproducibility.md and docs/formats.md alone, a module a chapter."""
