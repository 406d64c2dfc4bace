"""The deployed stack on a local AWS, under faults, kills and load.

Each part has a `run`. `seed` determines its faults and choices. `say` gets the progress, and every violation
in full. `stack` is the deployed team. Its functions reach S3 through a proxy while S3 is to fail. `folder` is
an empty folder for the part's files.
"""
