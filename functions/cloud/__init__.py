"""The function behind the routes of `cloud {}`. `gateway` defines the common parameters."""

import gc

# Imports leave no garbage, and collecting takes a tenth of a cold start. `gateway.function` enables it again.
gc.disable()
