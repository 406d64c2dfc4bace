"""The documents of the API, declared once for the function and for the programs that read them."""
