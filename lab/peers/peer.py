"""The other side of lab/peers: the lab's workloads in PyTorch (programs.py), run on request.

Reads one JSON object a line from standard input and answers each with one. Inputs and outputs pass through files of
raw elements that the harness names, so that it can compare whole outputs; times are measured here, around `count`
iterations, so that the pipe is never inside them.
"""
import contextlib, ctypes, gc, json, math, os, signal, sys, time

# Kineto's own advice where CUDA graphs are replayed: once it looks at a device it must not turn away again.
os.environ |= {"DISABLE_CUPTI_LAZY_REINIT": "1", "TEARDOWN_CUPTI": "0"}
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it stands still between requests, and would for ever
signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the harness's: it keeps what was measured
reply_to = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what libraries print must not meet the answers

try:
    import torch
except ImportError as error:  # the harness tries another interpreter, or says so in the row
    if not sys.stdin.readline():
        sys.exit(3)  # nobody waits for an answer: another interpreter was found meanwhile
    print(json.dumps({"error": f"no PyTorch ({error})"}), file=reply_to, flush=True)
    sys.exit(3)

from programs import program  # which lies beside this file

DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
          "i64": torch.int64, "i32": torch.int32, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool}
if hasattr(torch, "float8_e4m3fn"):  # since PyTorch 2.1
    DTYPES |= {"f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2}


# --- tensors and files

def elements_of(path, dtype, count):
    """The elements in a file of this size, mapped: what is written to them is in the file."""
    return torch.from_file(path, shared=True, size=count, dtype=DTYPES[dtype]) if count else torch.empty(0, dtype=DTYPES[dtype])


def read_file(path, dtype, shape, device):
    t = elements_of(path, dtype, math.prod(shape)).reshape(shape)
    return t.clone() if device == "cpu" else t.to(device)


def write_file(path, tensor):
    flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    elements_of(path, "u8", flat.numel()).copy_(flat)  # from where it is, once


class Inputs:
    """The copies of one instance's inputs, which its jobs share."""

    may_have_compiled = False  # since the last reset

    @classmethod
    def reset(cls):
        """Nothing that a compiler learnt of another instance's shapes stays."""
        if cls.may_have_compiled and "torch._dynamo" in sys.modules:  # imported by the first compilation
            torch._dynamo.reset()
        cls.may_have_compiled = False

    def __init__(self, request):
        self.request, self.device, self.copies = request, request["device"], []
        Inputs.reset()

    def load(self):
        self.copies = []
        for c in range(self.request["copies"]):
            inputs = []
            for i, spec in enumerate(self.request["inputs"]):
                if c > 0 and len(spec["files"]) == 1:
                    inputs.append(self.copies[0][i])
                else:
                    inputs.append(read_file(spec["files"][c], spec["dtype"], spec["shape"], self.device))
            self.copies.append(inputs)


# --- clocks. What runs is a function that asks for all its work and does not wait.

def synchronize(device):
    if device != "cpu":
        torch.cuda.synchronize()


def host_spans(run):
    """When the CPU worked, in microseconds: the calls are the work."""
    start = time.perf_counter()
    run()
    return [(start * 1e6, time.perf_counter() * 1e6)]


def event_spans(run):
    """One span from the first piece of work to the end of the last, gaps included."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return [(0.0, begin.elapsed_time(end) * 1e3)]


def traced_spans(run):
    """When each kernel, copy and fill began and ended, by the profiler."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        run()
        torch.cuda.synchronize()
    return [(event.time_range.start, event.time_range.end) for event in trace.events()
            if event.device_type == DeviceType.CUDA and not getattr(event, "is_user_annotation", False)]


def busy_us(spans):
    """The time in which at least one of the spans went on: kernels that overlap count once, gaps do not count."""
    busy, until = 0.0, -math.inf
    for begin, end in sorted(spans):
        busy += max(0.0, end - max(begin, until))
        until = max(until, end)
    return busy


class Job:
    """One contender of one instance: its function and its last results."""

    def __init__(self, request, inputs):
        self.request, self.inputs, self.device = request, inputs, inputs.device
        self.replays = request["mode"].endswith(":reduce-overhead")
        self.function = program(request["mode"], request["work"], request["parameters"], request.get("source", ""))
        self.results, self.last, self.poisoned = None, None, True
        Inputs.may_have_compiled |= request["mode"] not in ("torch", "float64")

    def once(self, iteration):
        self.results = None  # its memory is taken again
        if self.replays:  # whose results lie where the next replay writes: nobody holds the last ones now
            torch.compiler.cudagraph_mark_step_begin()
        out = self.function(*self.inputs.copies[iteration % len(self.inputs.copies)])
        self.results = out if isinstance(out, (tuple, list)) else (out,)

    def repeat(self, first, count):
        self.last = first + count - 1
        for i in range(first, first + count):
            self.once(i)

    # A program that writes over what it reads, as optimizers do, has that in copies of its own, which its restore() makes anew:
    # never while a clock runs, and where it holds what it was poisoned with, before that.

    def begin_at(self, iteration):
        if self.poisoned and hasattr(self.function, "restore"):
            self.function.restore(*self.inputs.copies[iteration % len(self.inputs.copies)])
        self.poisoned = False
        self.begin()

    def result(self, output):
        """Of one step from the inputs, which a program on copies of its own has left behind: its last iteration is made again."""
        if self.last is not None and hasattr(self.function, "restore"):
            self.poisoned = True
            self.begin_at(self.last)
            self.once(self.last)
            self.last = None
        return self.results[output]

    def waited(self):
        """What the calls since the last question waited for data, of a program that says so."""
        tell = getattr(self.function, "take_waited_us", None)
        return {"waited_us": tell()} if tell else {}

    def begin(self):
        torch.backends.cuda.matmul.allow_tf32 = self.request["parameters"].get("tf32") == "yes"
        synchronize(self.device)

    def call_us(self, first, count):
        """Of all of them, with one wait at their end."""
        self.begin_at(first)
        start = time.perf_counter()
        self.repeat(first, count)
        synchronize(self.device)
        return (time.perf_counter() - start) * 1e6

    def device_us(self, first, count, gaps):
        """What the device itself works in them; `gaps`: what it waits in between counts."""
        spans = host_spans if self.device == "cpu" else event_spans if gaps else traced_spans
        self.begin_at(first)
        return busy_us(spans(lambda: self.repeat(first, count)))

    def poison(self, output, byte):
        self.poisoned = True
        if self.results is None:
            self.begin()
            self.once(0)
        result = self.results[output].detach()
        if result.dim() == 0:
            result = result.view(1)
        as_they_lie = sorted(range(result.dim()), key=result.stride, reverse=True)  # a gradient may be transposed
        result.permute(as_they_lie).view(torch.uint8).fill_(byte)


def hello(request):
    torch.set_num_threads(request["threads"])
    triton = ""
    try:
        import triton as found
        triton = found.__version__
    except ImportError:
        pass
    if torch.cuda.is_available() and request["device"] != "cpu":
        torch.cuda.set_device(request["device"])
        if request["trace"]:  # before any graph is made: the profiler may not see into those
            with contextlib.suppress(Exception):  # whoever asks for a trace hears it
                traced_spans(lambda: torch.zeros(1, device=request["device"]))
    return {"torch": torch.__version__, "compile": hasattr(torch, "compile"), "triton": triton,
            "cuda": torch.cuda.is_available()}


def forget(device, idle=False):
    """Gives back what nobody holds. `idle`: no instance is left. A collection takes as long as there are objects to look at: those that
    stay, which compilers make when they are imported, are left out once nothing else is there."""
    if idle:
        Inputs.reset()
    gc.collect()
    if idle and len(sys.modules) > forget.modules:
        gc.freeze()
        forget.modules = len(sys.modules)
    if device != "cpu":
        torch.cuda.empty_cache()


forget.modules = 0


def answer(request, instances, jobs):
    command, id = request["command"], request.get("id")
    if command == "hello":
        return hello(request)
    if command == "inputs":
        instances[id] = Inputs(request)
    elif command == "load":
        instances[id].load()
    elif command == "forget":
        if known := instances.pop(id, None):
            device = known.device
            del known
            forget(device, idle=not instances and not jobs)
    elif command == "prepare":
        jobs[id] = Job(request, instances[request["inputs"]])
    elif command == "drop":
        jobs.pop(id, None)
    elif command == "run":
        return {"us": jobs[id].call_us(request["first"], request["count"]), **jobs[id].waited()}
    elif command == "device":
        return {"us": jobs[id].device_us(request["first"], request["count"], request["gaps"]), **jobs[id].waited()}
    elif command == "poison":
        jobs[id].poison(request["output"], request["byte"])
    elif command == "release":  # results that nobody will read again
        jobs[id].results = None
        if jobs[id].device != "cpu":
            torch.cuda.empty_cache()
    elif command == "read":
        write_file(request["file"], jobs[id].result(request["output"]))
    else:
        raise ValueError(f"unknown command {command}")
    return {}


def lacks_memory(error):
    of_gpu = getattr(torch.cuda, "OutOfMemoryError", MemoryError)
    return isinstance(error, (MemoryError, of_gpu)) or "allocate memory" in str(error)


def is_broken():
    """Whether the GPU refuses everything from now on, as after a bad access: only another process helps."""
    try:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        return False
    except Exception:
        return True


def main():
    instances, jobs = {}, {}
    for line in sys.stdin:
        try:
            with torch.enable_grad():
                reply = answer(json.loads(line), instances, jobs)
        except Exception as error:  # an answer, not an end: the harness writes it into the row
            reply = {"error": f"{type(error).__name__}: {error}"[:500], "no_memory": lacks_memory(error),
                     "ends": is_broken()}
        reply_to.write(json.dumps(reply) + "\n")
        reply_to.flush()
        if reply.get("ends"):
            os._exit(1)


main()
