"""Which formats a file shows: every definition, compiled once, and the search for them."""
