"""The CDK app of this repository, which is that of the package: one stack for each team in teams.toml."""

from holdfast_cdk.app import main

main()
