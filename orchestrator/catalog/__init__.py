"""What every actor of a product can really do: every answer here comes from the one decision."""
