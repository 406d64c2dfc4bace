"""A model of S3, a search that runs the production code on it, and the invariants of every interleaving."""
