"""The function behind the routes of `backend "http"`."""

import gc

# Imports leave no garbage, and collecting takes a tenth of a cold start. `gateway.function` enables it again.
gc.disable()
