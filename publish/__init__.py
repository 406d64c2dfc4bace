"""What is published: the documents as a site, and releases."""
