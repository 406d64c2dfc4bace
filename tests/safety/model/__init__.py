"""A model of S3, a scheduler that runs the production code on it, and what must hold in every schedule."""
