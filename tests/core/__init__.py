"""Tests of the kernel: the decision, the bridge, focus, sessions and agents."""
