"""Which distributions may come in: names looked at first, wheels verified, installed by pip in a jail."""
