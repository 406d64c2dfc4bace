"""What the command prints, asks and parses on a terminal."""
