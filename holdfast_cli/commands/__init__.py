"""The commands, one module for each group: arguments in, output out."""
