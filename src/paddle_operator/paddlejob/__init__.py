"""Decisions about PaddleJobs: pure functions from what is seen to what shall be done. One policy a file."""
