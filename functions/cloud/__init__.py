"""The function behind the routes of `cloud {}`; `gateway` says what its words mean."""

import gc

# What imports make is no garbage, and looking for it takes a tenth of a cold start. The handler ends this.
gc.disable()
