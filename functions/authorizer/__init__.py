"""The function that proves who a caller is."""
