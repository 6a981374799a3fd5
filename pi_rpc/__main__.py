"""`python -m pi_rpc`."""

import sys

from pi_rpc.cli import main

sys.exit(main())
