"""The function that looks at the team's bucket every hour. A schedule invokes it."""
