"""API Gateway's HTTP API: what the functions behind its routes have in common."""
