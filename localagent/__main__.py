"""`python -m localagent`."""

import sys

from localagent.cli.main import main

sys.exit(main())
