"""Bundle functions with the code of the checkout that is on the path; print the bundles' folders as JSON.

A program of its own, because another version is bundled with its own code. Its arguments are the functions.
"""

import json
import sys

from holdfast_cdk.bundle import bundle

if __name__ == "__main__":
    print(json.dumps({name: str(bundle(name, "local").path) for name in sys.argv[1:]}))
