"""The command line: parsing it, printing to the terminal and asking the user."""
