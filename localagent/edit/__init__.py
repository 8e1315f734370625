"""The edit space: byte splices found in syntax trees, best first. Proposes only; never judges, runs or writes."""
