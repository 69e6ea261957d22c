"""Tests of one actor: values, authority, names, schemas, tools, the loop."""
