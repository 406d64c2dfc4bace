"""What `holdfast doctor` looks at: one module for each place, each of which yields findings."""

from holdfast_cli.lazy import load_when_used

load_when_used(__name__)
