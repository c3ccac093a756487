"""`diagnose`: stages on a host, cheapest first, until the cause is certain; then the decision over all of them."""
