"""Machines that are network namespaces of this one: a switch, and nodes on links of a given rate both ways."""
import json
import os
import re
import shutil
import signal
import subprocess
import time

PREFIX = "cremabench"
NETWORK = "10.199"
BURST = 16384
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}


class Failure(Exception):
    """Of one measurement."""


def why_not():
    """Why no nodes can be made here; None where they can."""
    if os.geteuid() != 0:
        return "emulated nodes need root, for network namespaces"
    missing = [tool for tool in ("ip", "tc") if not shutil.which(tool)]
    return f"emulated nodes need iproute2's {' and '.join(missing)}" if missing else None


def call(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def namespaces():
    done = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True)
    return [line.split()[0] for line in done.stdout.splitlines() if line.startswith(PREFIX)]


def remove_left_over():
    """Namespaces of runs that were killed."""
    for name in namespaces():
        owner = re.fullmatch(rf"{PREFIX}(\d+)-\w+", name)
        if owner and not os.path.exists(f"/proc/{owner[1]}"):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


class Nodes:
    """`count` namespaces on one switch, which is a namespace, too: nothing of this is seen outside. Use as a context,
    which removes all of it."""

    def __init__(self, count, rate, buffer):
        self.count, self.rate, self.buffer = count, rate, buffer
        self.own = f"{PREFIX}{os.getpid()}"
        self.switch = f"{self.own}-switch"

    def name(self, node):
        return f"{self.own}-{node}"

    @staticmethod
    def address(node):
        return f"{NETWORK}.{node // 200}.{node % 200 + 1}"

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def make(self):
        shape = f"tbf rate {self.rate} burst {BURST} limit {self.buffer}"
        inside, shaping = ["link add bridge type bridge", "link set bridge up"], []
        for node in range(self.count):
            call("ip", "netns", "add", self.name(node))
        call("ip", "netns", "add", self.switch)
        # A packet as large as the bucket, not 64 KiB: it would have to be cut in software.
        sizes = f"gso_max_size {BURST} gro_max_size {BURST}"
        for node in range(self.count):
            inside += [f"link add port{node} {sizes} type veth peer name eth0 {sizes} netns {self.name(node)}",
                       f"link set port{node} master bridge up"]
            shaping.append(f"qdisc add dev port{node} root {shape}")
        call("ip", "-n", self.switch, "-batch", "-", text="\n".join(inside) + "\n")
        call("tc", "-n", self.switch, "-batch", "-", text="\n".join(shaping) + "\n")
        for node in range(self.count):
            lines = ["link set lo up", "link set eth0 up", f"addr add {self.address(node)}/16 dev eth0"]
            call("ip", "-n", self.name(node), "-batch", "-", text="\n".join(lines) + "\n")
            call("tc", "-n", self.name(node), "qdisc", "add", "dev", "eth0", "root", *shape.split())

    def __exit__(self, *_):
        for name in namespaces():
            if name.startswith(self.own + "-"):
                subprocess.run(["ip", "netns", "delete", name], capture_output=True)

    def start(self, node, command, **streams):
        # In a session of its own: Ctrl-C is for this program, which ends it.
        return subprocess.Popen(["ip", "netns", "exec", self.name(node)] + command, env=ONE_THREAD,
                                start_new_session=True, **streams)


class Usage:
    """Of processors at one moment: seconds of each of the processes, and of all on this machine."""

    def __init__(self, processes):
        self.time = time.monotonic()
        self.cpu = [cpu_seconds(process.pid) for process in processes]
        with open("/proc/stat") as file:
            ticks = [int(number) for number in file.readline().split()[1:9]]
        self.busy = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def end(processes, patience=5):
    """All that still run: asked first, then not asked."""
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
    until = time.monotonic() + patience
    for process in processes:
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def last_json_line(text):
    lines = [line for line in text.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else None
