"""What localagent is made of and holds: SBOM, offline proof, attack suite."""
