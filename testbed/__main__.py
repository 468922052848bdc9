"""The command line: `python -m testbed --help`."""

import argparse
import re
import signal
import sys
from collections.abc import Sequence

from testbed import binaries, box, images
from testbed.controlplane import ControlPlane
from testbed.errors import ControlPlaneError, RemedyError
from testbed.node_services import Hardware
from testbed.progress import Progress

DESCRIPTION = """\
A real Kubernetes control plane (etcd, kube-apiserver, kube-controller-manager) on this machine, for tests and
for trying things out. Needs no root, no containers and no network once the binaries are built. It listens on
loopback only and has no nodes: pods are accepted and stay Pending, unless a fake node takes them.
With --node, as root, there is a real one, with real containers.
"""

EPILOG = """\
a first session:
  python -m testbed up
  export KUBECONFIG=$(python -m testbed kubeconfig)
  kubectl get namespaces
  python -m testbed down

several at once:
  python -m testbed up --name blue; python -m testbed up --name green --scheduler

The first `up` or `build` compiles Kubernetes: about 7 minutes on 2 cores. The binaries are then kept in
~/.cache/paddle-operator ($XDG_CACHE_HOME). Binaries in the folder $KUBEBUILDER_ASSETS are used instead. Go is
taken from PATH; without one a pinned Go is installed into the same cache.
"""

COMMANDS = {
    "build": "make sure of the binaries, start nothing",
    "image": "build an image (once) and put it on the real node: operator, tiny, paddle with the demos, ...",
    "packages": "install the Debian packages that a real node needs (needs root)",
    "up": "start a control plane; returns when it is ready; fine if it already is",
    "down": "stop it and delete all that belongs to it, in whatever state it is; fine if there is none",
    "status": "a line per component; exit code 1 unless all are healthy",
    "kubeconfig": "print the path of the administrator's kubeconfig",
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    # `up` then stops what it has started, as after Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return _run(options)
    except RemedyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; what was started has been stopped", file=sys.stderr)
        return 128 + signal.SIGINT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m testbed",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text.capitalize() + ".")
        if name not in {"build", "packages"}:
            command.add_argument("--name", default="default", help="which testbed (default: %(default)s)")
        if name == "build":
            command.add_argument("--node", action="store_true", help="those of a real node as well, and helm")
        if name == "image":
            command.add_argument("image", choices=sorted(images.IMAGES), help="which one")
        if name == "up":
            _add_options_of_up(command)
    return parser


def _add_options_of_up(command: argparse.ArgumentParser) -> None:
    command.add_argument("--scheduler", action="store_true", help="start kube-scheduler as well")
    command.add_argument(
        "--node", action="store_true", help="and a real node: kubelet, containers, DNS (needs root)"
    )
    command.add_argument(
        "--gpus", type=_count, default=0, help="so many nvidia.com/gpu does the node pretend to have"
    )
    command.add_argument(
        "--label",
        action="append",
        type=_label,
        default=[],
        metavar="NAME=VALUE",
        help="a label of the node; may be given several times",
    )


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of GPUs; give 0 or more")
    return int(text)


def _label(text: str) -> str:
    """A kubelet with any other text would not start."""
    if not re.fullmatch(r"[\w./-]+=[\w.-]*", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is no label; give name=value")
    return text


def _run(options: argparse.Namespace) -> int:
    match options.command:
        case "build":
            of_a_node = (*binaries.NODE_PROGRAMS, *binaries.INSTALLERS) if options.node else ()
            binaries.ensure([*binaries.CONTROL_PLANE_PROGRAMS, *of_a_node])
            return 0
        case "packages":
            box.install_means()
            return 0
        case "up":
            return _up(ControlPlane(options.name, scheduler=options.scheduler, node=_hardware(options)))
        case "image":
            ControlPlane(options.name).node.import_image(images.ensure(images.IMAGES[options.image]))
            return 0
        case "down":
            return _down(ControlPlane(options.name))
        case "status":
            return _status(ControlPlane(options.name))
        case _:
            print(ControlPlane(options.name).kubeconfig)
            return 0


def _hardware(options: argparse.Namespace) -> Hardware | None:
    if options.node:
        return Hardware(options.gpus, tuple(options.label))
    if options.gpus or options.label:
        raise ControlPlaneError("--gpus and --label are of a real node", remedy="say --node as well")
    return None


def _up(plane: ControlPlane) -> int:
    progress = Progress(f"testbed {plane.name}", "starting")
    progress.stop()
    if plane.up():
        progress.done(f"up at {plane.url}")
    else:
        print(f"testbed {plane.name}: already up at {plane.url}")
    print(f"export KUBECONFIG={plane.kubeconfig}")
    print(f"export PATH={plane.kubectl.parent}:$PATH")
    return 0


def _down(plane: ControlPlane) -> int:
    found = plane.down()
    if found:
        print(f"testbed {plane.name}: removed {', '.join(found)}")
    else:
        print(f"testbed {plane.name}: nothing to remove, it is not up")
    return 0


def _status(plane: ControlPlane) -> int:
    statuses = plane.status()
    if not statuses:
        state = f"not up, leftovers in {plane.folder}" if plane.folder.exists() else "not up"
        print(f"testbed {plane.name}: {state}; start it with `python -m testbed up --name {plane.name}`")
        return 1
    for status in statuses:
        pid = "-" if status.pid is None else status.pid
        print(f"{status.component:<24} pid {pid:<8} {status.address:<40} {status.state}")
    return 0 if all(status.healthy for status in statuses) else 1


if __name__ == "__main__":
    sys.exit(main())
