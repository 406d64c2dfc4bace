"""The function behind the routes of the management API; `gateway` says what its words mean.

`InvalidRequest` says that a parameter or a member breaks a rule. Where CloudWatch Logs throttles or does not
respond in time, `OutcomeUnknown` is raised; where it refuses the function, `StorageRefused`.
"""

import gc

# What imports make is no garbage, and looking for it takes a tenth of a cold start. The handler ends this.
gc.disable()
