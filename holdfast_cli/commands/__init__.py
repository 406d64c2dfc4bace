"""The commands, one module for each group: they read arguments and print output."""
