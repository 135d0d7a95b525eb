"""Case `values`: ns a hit that reads memory, texts and the stack, or is aggregated by a key, beside bpftrace."""
from . import kymo, uprobes
from .case_filter import KERNEL
from .elf import Text
from .loops import FAST, Kymo, Measured, Tracer, ratio
from .results import Row

FUNCTION = "hit_push2"
SLOW = 10_000  # calls a round
FEW = 4_000  # so that the recorder, which names each frame, keeps up
CHAIN = "the stack, 16 frames by frame pointers"
# (what is asked, kymo's option and words, events of a call, calls a round, bpftrace's action)
ASKED = [
    ("two registers", "-p", "{} a=%di:s32 b=%si:s64", 1, FAST, "@ = count()"),
    ("a word of the stack", "-p", "{} a=%di:s32 b=+8($stack):s64", 1, FAST, "@ = sum(*(int64 *)(reg(\"sp\") + 8))"),
    ("a word elsewhere", "-p", "{} a=%di:s32 b=@+16:x64", 1, SLOW, None),
    ("a text elsewhere", "-p", "{} a=%di:s32 b=@+1:string", 1, SLOW, None),
    ("a word elsewhere, fast reads", "--fast-reads -p", "{} a=%di:s32 b=@+16:x64", 1, FAST, None),
    ("a text elsewhere, fast reads", "--fast-reads -p", "{} a=%di:s32 b=@+1:string", 1, FAST, None),
    ("the function's name", "-p", "{} a=%di:s32 func", 1, FAST, "@[func] = count()"),
    ("the thread's name", "-p", "{} a=%di:s32 comm", 1, SLOW, "@[comm] = count()"),
    ("count by a key", "--count", "{} by arg1 % 16", 0, FAST, "@[arg1 % 16] = count()"),
    ("histogram", "--hist", "{} arg1", 0, FAST, "@ = hist(arg1)"),
    ("the stack", "--stack -p", "{}", 1, SLOW, "@[ustack(16)] = count()"),
    (CHAIN, "--frame-pointers --stack=16 -p", "{}", 1, FEW, "@[ustack(16)] = count()"),
]


class Bpftrace(uprobes.Bpftrace):
    only_args = (2, )

    def __init__(self, name, program, shape, action):
        super().__init__(name, program, {f"{shape}2": KERNEL["push2"]})
        self._action = action

    def script(self):
        return f"uprobe:{self.program}:{FUNCTION} {{ {self._action}; }}"

    def text(self, pid, elf):
        return Text(pid, elf, [FUNCTION])


def _shape(what):
    """What is called: below many functions where these are to be found."""
    return "deep" if what == CHAIN else "push"


def _kymo(bench, program, asked):
    what, option, words, events, calls, _ = asked
    *options, option = option.split()
    probe = option, words.format(f"{kymo.quote(program)}:{FUNCTION}")
    return Kymo(f"kymo, {what}", program, {f"{_shape(what)}2": calls}, bench.kymo, [probe], [FUNCTION],
                events_a_call=events, words=options)


def run(bench):
    target = bench.builder.target()
    tracers = [Tracer("none", target, {"push2": FAST, "deep2": FAST})]
    if bench.kymo_missing:
        bench.unavailable("values", "kymo", bench.kymo_missing)
    else:
        tracers += [_kymo(bench, target, asked) for asked in ASKED]
    for what, *_, action in ASKED:
        if action:
            uprobes.add_bpftrace(bench, "values", tracers, Bpftrace(f"bpftrace, {what}", target, _shape(what), action))
    return _rows(Measured(bench, "values", tracers, (1, )))


def _rows(measured):
    rows = []
    for what, *_ in ASKED:
        key = _shape(what), 2, 1
        own = measured.net((f"kymo, {what}", *key))
        for name in (f"kymo, {what}", f"bpftrace, {what}"):
            figure = measured.net((name, *key)) if name in measured.tracers else None
            if figure is not None:
                rows.append(Row("entry push %rbp, 2 args, 1 thr", name, figure, ratio(figure, own), [],
                                measured.note(name)))
    return rows
