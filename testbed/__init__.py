"""A real Kubernetes control plane on this machine, for tests and for trying things out.

`python -m testbed --help` is the way in for people, `testbed.controlplane.ControlPlane` the one for tests.
"""
