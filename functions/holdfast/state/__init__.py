"""States and their locks: documents, guards, and the verbs that read and change them."""
