"""The real API server, over aiohttp."""
