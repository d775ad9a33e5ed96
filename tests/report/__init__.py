"""Reports: pages are taken apart, and looked at in a browser."""
