"""The commands, one module for each group: they read the arguments and print the output."""
