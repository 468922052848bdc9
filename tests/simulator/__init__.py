"""The operator's whole life in memory, under a virtual clock and every fault that we know."""
