"""Everything that speaks SSH: the only room that imports fabric or paramiko."""
