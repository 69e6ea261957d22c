"""What every test shares: how Hypothesis searches, and that Ctrl-C reaches the programs that a test starts."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

# Shared cores make single examples slow now and then: a deadline would test the machine. In CI the search is the same
# every time, so that a red run is red again; at a desk it goes on looking.
settings.register_profile("desk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("desk"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")

# A shell that starts the tests in the background has them ignore SIGINT, and every program they start inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)
