"""The deployed stack on a local AWS, under faults, kills and load.

Each part has a `run`. `seed` draws its faults and choices; `say` gets the progress, and in full what was
found. `stack` is the deployed team; its functions are sent through a proxy while S3 is to fail. `folder` is
empty, for what the part writes.
"""
