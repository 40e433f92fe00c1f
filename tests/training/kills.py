#!/usr/bin/env python3
"""Kills `tw train` at random moments (SIGKILL, or Ctrl-C's SIGINT), half of them while a checkpoint is being written, goes on with
--resume, and holds what comes out in the end against a training that nobody interrupted: the same bytes of the
last checkpoint, the same log, nothing lost on the way.

    tests/training/kills.py build/tw --kills 200 --steps 48

Ends with 0 if all of that holds. With more kills than one training takes, another begins.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time


def text():
    return "".join(f"the quick brown fox {i} jumps over the lazy dog\n" for i in range(60))


def unfinished(run):
    return {name for name in os.listdir(run) if name.endswith(".tmp")} if run.exists() else set()


class Trainings:
    def __init__(self, arguments, folder):
        self.folder = folder
        self.steps = arguments.steps
        self.random = random.Random(arguments.seed)
        self.longest_s = arguments.longest
        self.signal = signal.Signals[arguments.signal]
        data = arguments.data or folder / "text.txt"
        if not arguments.data:
            data.write_text(text())
        self.start = [arguments.tw, "train", "char", "--cache", folder / "cache", "--sample", "0"]
        self.fresh = ["--small", "--data", data, "--steps", str(self.steps), "--quiet"]
        self.kills = self.during_writes = self.before_first = 0
        self.lost = []

    def command(self, run):
        if (run / "training.json").exists():
            return self.start + ["--resume", run]
        return self.start + self.fresh + ["--out", run]

    def whole(self, run):
        subprocess.run(self.command(run), check=True, stdout=subprocess.DEVNULL)

    # Waits for a moment to kill at, with what earlier processes left. False where the process ends before.
    def moment(self, process, run, left):
        end = time.monotonic() + self.random.uniform(0, self.longest_s)
        aimed = self.random.random() < 0.5
        while time.monotonic() < end or aimed:
            if process.poll() is not None:
                return False
            if aimed and unfinished(run) - left:
                time.sleep(self.random.uniform(0, 0.01))
                return True
            time.sleep(0.0005 if aimed else 0.005)
        return process.poll() is None

    # A training killed until it ends, or until there were enough kills: then it runs to its end.
    def killed(self, run, kills):
        while True:
            left = unfinished(run)
            process = subprocess.Popen(self.command(run), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if self.kills < kills and self.moment(process, run, left):
                process.send_signal(self.signal)
                self.kills += 1
                if not run.exists() or not (run / "manifest").exists():
                    self.before_first += 1
                process.wait()
                self.during_writes += bool(unfinished(run) - left)
            said = process.communicate()[1]
            self.lost += [line for line in said.splitlines() if "lost" in line]
            if process.returncode == 0:
                return
            if process.returncode != -self.signal and not (self.signal == signal.SIGINT and process.returncode == 130):
                sys.exit(f"`{' '.join(map(str, process.args))}` ended with {process.returncode}:\n{said}")

    # What differs between a training that was killed and the one that was not; empty where nothing does.
    def difference(self, run, whole):
        name = f"step-{self.steps:08}.safetensors"
        if (run / name).read_bytes() != (whole / name).read_bytes():
            return f"{name} has other bytes"
        told = [[{k: r[k] for k in ("step", "train_loss", "val_loss", "grad_norm", "learning_rate")}
                 for r in map(json.loads, (folder / "log.jsonl").read_text().splitlines())] for folder in (run, whole)]
        if told[0] != told[1]:
            return f"log.jsonl tells\n{told[0]}\nand not\n{told[1]}"
        return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tw")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--steps", type=int, default=48)
    parser.add_argument("--longest", type=float, default=4, help="seconds that a process lives, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--signal", choices=["SIGKILL", "SIGINT"], default="SIGKILL")
    parser.add_argument("--data", type=pathlib.Path, help="a text; without, a short one of its own")
    arguments = parser.parse_args()
    arguments.tw = os.path.abspath(arguments.tw)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tilewright-kills-") as name:
        folder = pathlib.Path(name)
        trainings = Trainings(arguments, folder)
        trainings.whole(folder / "whole")
        ended = 0
        while trainings.kills < arguments.kills:
            run = folder / "run"
            trainings.killed(run, arguments.kills)
            if found := trainings.difference(run, folder / "whole"):
                sys.exit(f"after {trainings.kills} kills: {found}")
            shutil.rmtree(run)
            ended += 1
    print(f"{trainings.kills} kills, {trainings.during_writes} of them while a file was being written and "
          f"{trainings.before_first} before the first checkpoint; {ended} trainings of {arguments.steps} steps "
          f"ended with the bytes of the one that was not killed; {len(trainings.lost)} checkpoints lost; "
          f"{time.monotonic() - began:.0f} s")
    for line in trainings.lost[:5]:
        print(line)
    sys.exit(1 if trainings.lost else 0)


if __name__ == "__main__":
    main()
