"""The fast paths of the responses, by device; same results as the plain ones beside this room."""
