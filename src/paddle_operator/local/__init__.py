"""The laptop: the API server in memory, and a node that runs pods as processes of this machine."""
