"""Build the published artifacts: the documents as a site, and releases."""
