"""The commands, one module for each group. A module reads the arguments and prints the output."""
