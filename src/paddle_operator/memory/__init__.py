"""An API server in memory, honest in exactly what we rely on. tests/contract is the closed list of that."""
