"""What tests build their inputs with: repositories, jails, models, daemons, kits and the user's home."""
