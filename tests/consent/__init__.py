"""Tests of consent: what a person is asked, what the answer binds, and what becomes of the turn meanwhile."""
