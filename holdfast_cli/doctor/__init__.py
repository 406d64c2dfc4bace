"""What `holdfast doctor` looks at: one module for each place, each of which yields findings."""
