"""The search for a way to lose a state: on a model of S3, at random, and on a deployed stack.

The same `seed`, or the same `number` of a batch, makes the same choices. `say` takes a line of progress. A
`run` begins nothing new after its `seconds`. `count` generated requests aim at the states of the `ground`.
"""
