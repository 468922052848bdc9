"""`paddle-operator run`: the real operator on this machine, and what a person sees of it."""
