"""The two sides of bench/gpu: each measurement is a process of its own with a time limit."""
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

import gpu_nets

HERE = os.path.dirname(os.path.abspath(__file__))
# nvidia-smi counts GPUs in this order; CUDA's own puts the fastest first.
ENVIRONMENT = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "PYTHONDONTWRITEBYTECODE": "1"}
if sys.prefix != sys.base_prefix:  # crema, too, finds CUDA's libraries among this Python's packages
    ENVIRONMENT["VIRTUAL_ENV"] = sys.prefix
DISPLAY = re.compile(r"Iteration \d+ \(\S+ iter/s, (\S+)s/(\d+) iters\)")
BATCH = re.compile(r"^I\d+ (\d+):(\d+):([\d.]+) .*\] Batch \d+, ", re.MULTILINE)


class Failure(Exception):
    """Of one measurement."""


class Memory:
    """How much of the GPU's memory a process holds, from nvidia-smi."""

    def __init__(self, gpu):
        visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
        self.gpu = visible[gpu] if gpu < len(visible) else str(gpu)
        self.before = self.used()
        self.ways = set()

    def query(self, what):
        command = ["nvidia-smi", "-i", self.gpu, f"--query-{what}", "--format=csv,noheader,nounits"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return []
        return [line.split(", ") for line in done.stdout.splitlines()] if done.returncode == 0 else []

    def used(self):
        rows = self.query("gpu=memory.used")
        return float(rows[0][0]) if rows and rows[0][0].isdigit() else None

    def of(self, process):
        """Megabytes, or None. In a container nvidia-smi may not know the process; then what the whole GPU has more."""
        for row in self.query("compute-apps=pid,used_memory"):
            if len(row) == 2 and row[0] == str(process.pid) and row[1].isdigit():
                self.ways.add("nvidia-smi, by process")
                return float(row[1])
        used = self.used()
        if used is None or self.before is None:
            return None
        self.ways.add("nvidia-smi, the GPU's memory in use against that at the start")
        return used - self.before


def first_error(text, returncode):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for pattern in (r"^\S*Error:", r"\berror\b|Check failed|^F\d{4}"):
        for line in lines:
            if re.search(pattern, line):
                return line
    if lines and returncode >= 0:
        return lines[-1]
    return f"ended by signal {signal.Signals(-returncode).name}" if returncode < 0 else f"exit code {returncode}"


class Crema:
    """`train` measured by its log of iterations a second, `crema test` by the times of its batches."""

    def __init__(self, args, memory):
        self.programs, self.gpu, self.memory = os.path.abspath(args.programs), args.gpu, memory
        self.seconds, self.display = args.seconds, args.display
        self.precisions = ["f32", "bf16"]
        if "tf32" in self.text("crema", "time", "--help"):
            self.precisions.insert(1, "tf32")

    def text(self, program, *arguments):
        try:
            done = subprocess.run([os.path.join(self.programs, program), *arguments], capture_output=True, text=True,
                                  env={**os.environ, **ENVIRONMENT}, timeout=60)
        except subprocess.TimeoutExpired:
            return ""
        return done.stdout + done.stderr

    def measure(self, net, mode, precision, limit):
        with tempfile.TemporaryDirectory() as folder:
            gpu_nets.write_files(net, mode, precision, self.display, folder)
            training = mode == "training"
            command = ([os.path.join(self.programs, "train"), "--solver=solver.prototxt"] if training else
                       [os.path.join(self.programs, "crema"), "test", "--model=net.prototxt",
                        "--iterations=1000000000", f"--precision={precision}"])
            command += ["--weights=values.caffemodel", f"--gpu={self.gpu}"]
            find_rate = self.training_rate if training else self.inference_rate
            log = os.path.join(folder, "log")
            with open(log, "w") as output:
                process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output,
                                           env={**os.environ, **ENVIRONMENT})
            try:
                rate = self.follow(process, log, find_rate, limit)
                mb = self.memory.of(process)
            finally:
                process.kill()
                process.wait()
            result = {"steps_per_second": rate, "mb": mb}
            if mb is None:
                result["planned_mb"] = self.planned(folder, training, precision)
            return result

    @staticmethod
    def follow(process, log, find_rate, limit):
        end = time.monotonic() + limit
        while True:
            ended = process.poll()
            with open(log) as file:
                text = file.read()
            rate = find_rate(text)
            if rate:
                return rate
            if ended is not None:
                raise Failure(first_error(text, ended))
            if time.monotonic() > end:
                raise Failure(f"no result after {limit:.0f} s")
            time.sleep(0.1)

    def training_rate(self, log):
        """Of the intervals after the second line, which holds the first, slow iterations."""
        intervals = [(float(seconds), int(count)) for seconds, count in DISPLAY.findall(log)][2:]
        total = sum(seconds for seconds, _ in intervals)
        return sum(count for _, count in intervals) / total if intervals and total >= self.seconds else None

    def inference_rate(self, log):
        """Of the batches after the first ones, by the times in the log."""
        times = BATCH.findall(log)[3:]
        stamps = [3600 * int(hour) + 60 * int(minute) + float(second) for hour, minute, second in times]
        total = (stamps[-1] - stamps[0]) % 86400 if len(stamps) > 1 else 0
        return (len(stamps) - 1) / total if total >= self.seconds else None

    def planned(self, folder, training, precision):
        """Parameters, gradients, history and activations as `crema compile` plans them, in megabytes."""
        text = self.text("crema", "compile", f"--model={folder}/net.prototxt", f"--precision={precision}",
                         f"--phase={'TRAIN' if training else 'TEST'}")
        units = {"B": 2**-20, "KiB": 2**-10, "MiB": 1, "GiB": 2**10}
        size = lambda pattern: next((float(number) * units[unit] for number, unit in
                                     re.findall(pattern + r" +([\d.]+) (\w+)", text)), 0)
        return size(r"\nparameters") * (2 if training else 1) + size("their gradients") + size(r"\narena")


class PyTorch:
    """pytorch_gpu.py. start() lets a process import PyTorch, which takes seconds, while crema is measured."""

    def __init__(self, args, memory):
        self.gpu, self.seconds, self.memory = args.gpu, args.seconds, memory
        self.layouts, self.about = {}, {}

    def start(self, net, mode, precision, compiled=False):
        command = [sys.executable, os.path.join(HERE, "pytorch_gpu.py"), "--attended", f"--net={net.name}",
                   f"--batch={net.batch}", f"--classes={net.classes}", f"--mode={mode}", f"--precision={precision}",
                   f"--gpu={self.gpu}", f"--seconds={self.seconds}"]
        layout = self.layouts.get((net.name, mode, precision))
        if layout:
            command.append(f"--layout={layout}")
        if compiled:
            command.append("--compile")
        errors = tempfile.TemporaryFile("w+")
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0,
                                   start_new_session=True, env={**os.environ, **ENVIRONMENT})
        process.errors = errors
        return process

    def measure(self, process, net, mode, precision, limit):
        end = time.monotonic() + limit
        try:
            self.line(process, end, limit)
            self.send(process)
            result = json.loads(self.line(process, end, limit))
            result["mb"] = self.memory.of(process)
            self.send(process)
            process.stdin.close()
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self.stop(process)
        self.layouts.setdefault((net.name, mode, precision), result["layout"])
        self.about.update({key: result[key] for key in ("version", "cuda", "cudnn", "gpu") if key in result})
        return result

    @staticmethod
    def send(process):
        try:
            process.stdin.write(b"\n")
        except BrokenPipeError:
            pass

    @staticmethod
    def line(process, end, limit):
        """Of JSON or "ready"; libraries may print others."""
        while select.select([process.stdout], [], [], max(0, end - time.monotonic()))[0]:
            text = process.stdout.readline().decode(errors="replace")
            if not text:
                ended = process.wait()
                process.errors.seek(0)
                raise Failure(first_error(process.errors.read(), ended))
            if text.startswith(("ready", "{")):
                return text
        raise Failure(f"no result after {limit:.0f} s")

    @staticmethod
    def stop(process):
        """With the processes by which torch.compile compiles."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        process.errors.close()
        process.stdout.close()
        try:
            process.stdin.close()
        except BrokenPipeError:
            pass
