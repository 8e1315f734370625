"""Keys, signed envelopes, and the statements about an accepted patch that others can verify offline."""
