"""Print output, ask questions and parse the command line."""
