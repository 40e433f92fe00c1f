"""Batches of tokens by torch.utils.data.DataLoader, beside a step of a stated length: the lab's pair data_loading. Lies beside
peer.py."""
import glob, time

import numpy, torch
from torch.utils.data import DataLoader, Dataset

HEADER_BYTES, WIDTH_AT = 64, 12  # of a shard: include/tilewright/nn/token_shards.h


class Windows(Dataset):
    """The windows of `length` tokens, each with the one that follows, of a folder of shards that are mapped where they are read."""

    def __init__(self, folder, length):
        self.folder, self.length, self.shards = folder, length, None

    def opened(self):
        if self.shards is None:  # each worker has its own
            self.shards = []
            for path in sorted(glob.glob(self.folder + "/*.tokens")):
                width = numpy.fromfile(path, "<u4", 1, offset=WIDTH_AT)[0]
                self.shards.append(numpy.memmap(path, f"<u{width}", "r", HEADER_BYTES))
            self.ends = numpy.cumsum([len(shard) for shard in self.shards])
        return self.shards

    def __len__(self):
        self.opened()
        return int(self.ends[-1] - 1) // self.length

    def __getitem__(self, window):
        shards, first, parts, wanted = self.opened(), window * self.length, [], self.length + 1
        at = int(numpy.searchsorted(self.ends, first, "right"))
        while wanted > 0:
            begin = first - (int(self.ends[at - 1]) if at > 0 else 0)
            parts.append(shards[at][begin:begin + wanted].astype(numpy.int32))
            wanted, first, at = wanted - len(parts[-1]), int(self.ends[at]), at + 1
        return torch.from_numpy(parts[0] if len(parts) == 1 else numpy.concatenate(parts))


class Step:
    """Takes a batch and keeps the device at work for about `us`, as the pair's own step does, with PyTorch's products."""

    def __init__(self, device, us):
        size, dtype = (2048, torch.bfloat16) if device.type == "cuda" else (256, torch.float32)
        self.device = device
        self.a, self.b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
        self.c, self.products = torch.empty_like(self.a), 0
        if us > 0:
            self.products = max(1, round(us / min(self.of_ten() for _ in range(5))))

    def multiply(self, count):
        for _ in range(count):
            torch.mm(self.a, self.b, out=self.c)
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def of_ten(self):
        start = time.perf_counter()
        self.multiply(10)
        return (time.perf_counter() - start) * 1e6 / 10

    def __call__(self, batch):
        taken = torch.cat((batch[:, :-1], batch[:, 1:]))
        self.multiply(self.products)
        return taken


class Loading:
    """Called with the order of the windows, it gives what each step of an epoch took."""

    def __init__(self, parameters, workers):
        self.parameters, self.workers, self.order, self.step, self.waited = parameters, workers, None, None, 0.0

    def begin(self, order):
        """Opens the shards, which are others where the order is another."""
        self.order = order
        if self.step is None:
            self.step = Step(order.device, float(self.parameters["step_us"]))
        windows = Windows(self.parameters["shards"], int(self.parameters["length"]))
        self.loader = DataLoader(windows, batch_size=int(self.parameters["rows"]), sampler=order.tolist(), num_workers=self.workers,
                                 pin_memory=order.device.type == "cuda", persistent_workers=self.workers > 0)

    def __call__(self, order):
        if order is not self.order:
            self.begin(order)
        taken, asked = [], time.perf_counter()
        for batch in self.loader:
            batch = batch.to(order.device, non_blocking=True)
            self.waited += (time.perf_counter() - asked) * 1e6
            taken.append(self.step(batch))
            asked = time.perf_counter()
        return taken

    def take_waited_us(self):
        waited, self.waited = self.waited, 0.0
        return waited


def program(work, parameters, mode):
    """The program of a workload, or None where it is none of these."""
    if work != "data_loading":
        return None
    return Loading(parameters, 2 if mode == "torch DataLoader, workers" else 0)
