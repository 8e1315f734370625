"""Whether a repair that passes its tests is right: what speaks for and against it, and how likely it is."""
