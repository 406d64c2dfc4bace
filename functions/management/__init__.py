"""The function behind the routes of the management API. `gateway` defines the common parameters.

`InvalidRequest` is raised for an invalid parameter or member. `OutcomeUnknown` is raised if CloudWatch Logs
throttles or does not respond in time, `StorageRefused` if it refuses the function.
"""

import gc

# Imports leave no garbage, and collecting takes a tenth of a cold start. `gateway.function` enables it again.
gc.disable()
