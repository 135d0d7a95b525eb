"""Helpers of end-to-end tests. tests/run runs each `def test_PROMISE(tmp)` in a process and a directory of its own; a
test says what it expects with these, and is cleaned up after whatever happens.

    result = record('-p', 'libc:malloc', '--', 'true')      kymo's outputs and exit status
    process = target('selfcheck', '-t', '4')                a program of tests/targets that is ready
    check(counts['x'] == 5, 'x is called five times')
    check_same(actual_text, expected_text)
    skip('no LTTng here')
"""
import collections
import contextlib
import heapq
import json
import os
import pty
import random
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import processes

SOURCE = Path(os.environ.get('KYMO_SOURCE') or Path(__file__).resolve().parents[2])
KYMO = os.environ.get('KYMO') or str(SOURCE / 'build/kymo')  # half of the tests have one with sanitizers
KYMO_PLAIN = os.environ.get('KYMO_PLAIN') or str(SOURCE / 'build/kymo')  # for what is measured in memory or time
TARGETS = Path(os.environ.get('KYMO_TARGETS') or SOURCE / 'build/tests/targets')
TORTURE_SECONDS = int(os.environ.get('KYMO_TORTURE_SECONDS') or 60)
IS_WHOLE = bool(os.environ.get('KYMO_WHOLE'))  # all cases, as make torture wants it

SYS_CLOCK_NANOSLEEP = 230
NOBODY = 65534  # a user and group without rights, for run(..., user=NOBODY)

_clean_ups = []


class Skip(Exception):
    """Not an outcome of kymo: the machine cannot show it."""


class Failure(AssertionError):
    pass


def skip(reason):
    raise Skip(reason)


def fail(message):
    raise Failure(message)


def timeout(seconds):
    """@timeout(300): this test may take that long. Read by tests/run, so `seconds` must be a literal."""
    return lambda function: function


def alone(function):
    """@alone: nothing else runs beside this test."""
    return function


def waits(function):
    """@waits: this test mostly waits, for seconds, and takes little of a processor: it runs beside those that do."""
    return function


def sampled(function):
    """@sampled: what this test takes of its cases is a share() of them, except with make torture, which runs it, too.
    """
    return function


def share(things, part):
    """Every `part`th of them, from one on that seed() chooses; all of them with make torture."""
    things = list(things)
    return things if IS_WHOLE else things[random.randrange(part)::part]


def at_end(function, *args):
    """Call it when the test is over, last in first out."""
    _clean_ups.append((function, args))


@contextlib.contextmanager
def clean_up_after():
    """What is left to at_end() within this block is done at its end: for tests that do one thing thousands of times."""
    mark = len(_clean_ups)
    try:
        yield
    finally:
        while len(_clean_ups) > mark:
            function, args = _clean_ups.pop()
            function(*args)


def clean_up():
    """Texts of what went wrong meanwhile. Called by one.py."""
    failures = []
    while _clean_ups:
        function, args = _clean_ups.pop()
        try:
            function(*args)
        except Exception as error:
            failures.append(f'while cleaning up: {type(error).__name__}: {error}')
    return failures


# ---- saying what is expected ---------------------------------------------------------------------


def check(condition, message='', *context):
    """Fail with `message`, and with each of `context` whole (Results and texts), unless `condition`."""
    if not condition:
        fail('\n'.join([message or 'not so', *map(str, context)]))


def check_equal(actual, expected, what='value'):
    if actual != expected:
        fail(f'{what}: expected {expected!r}, got {actual!r}')


def check_same(actual, expected, what='text'):
    """Texts or lists of lines; a failure shows the whole difference."""
    actual, expected = ([*map(str, text)] if not isinstance(text, str) else text.splitlines()
                        for text in (actual, expected))
    if actual != expected:
        import difflib  # not at each start
        fail(f'{what} differs:\n' +
             '\n'.join(difflib.unified_diff(expected, actual, 'expected', 'actual', lineterm='', n=10)))


def check_matches(text, pattern, what='text'):
    """`pattern` is searched for, with ^ and $ at lines."""
    if not re.search(pattern, text, re.MULTILINE):
        fail(f'{what} has nothing like /{pattern}/:\n{text}')


def eventually(condition, what, seconds=30):
    """Wait until condition() is true and return its value; fail after `seconds`, a bound for a loaded machine, with
    `what`: a text, or a function that makes it then."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            fail(f'still not so after {seconds} s: {what() if callable(what) else what}')
        time.sleep(0.01)
    return value


# ---- running things ------------------------------------------------------------------------------


class Result:
    """Of a command that has ended. `status` is negative for a signal."""
    def __init__(self, command, status, out, err):
        self.command, self.status, self.out, self.err = command, status, out, err

    def __str__(self):
        return f'$ {self.command}\n{self.out}{self.err}[exit status {self.status}]'

    def ok(self):
        """Itself, when it ended with 0."""
        return self.ended(0)

    def ended(self, status):
        check(self.status == status, f'exit status {self.status} instead of {status}', self)
        return self

    def refused(self, pattern, status=1):
        """kymo said no: `pattern` is in its one sentence on stderr, stdout is empty."""
        self.ended(status)
        check(re.search(pattern, self.err), f'stderr has nothing like /{pattern}/', self)
        return self

    def wrong_words(self, sentence):
        """kymo was asked wrongly: `sentence` is all that its first line on stderr says."""
        self.ended(2)
        check_same(self.err.splitlines()[0], f'kymo: {sentence}', f'the sentence about: {self.command}\n')
        return self

    def warnings(self):
        """Lines of kymo's."""
        return [line for line in self.err.splitlines() if 'warning' in line]

    def json(self):
        """The last line of stdout, as targets print it."""
        lines = self.out.strip().splitlines()
        check(lines, 'no output', self)
        return json.loads(lines[-1])


def command_text(command):
    return shlex.join(map(str, command))


def demote(options):
    """user=UID becomes what Popen understands."""
    options = dict(options)
    user = options.pop('user', None)
    return {**options, 'user': user, 'group': user, 'extra_groups': []} if user is not None else options


def run(*command, input='', env=None, seconds=90, **options):
    """Run to the end; outputs as text. `env` is added to the environment; others go to subprocess.Popen."""
    process = start(*command, env=env, **options)
    return process.end(input=input, seconds=seconds)


def start(*command, env=None, **options):
    return Process(command, env, options)


killed_ids = set()  # of processes that were there when their test was over


class Process:
    """A program that runs. Outputs go to files, so that no process waits for another; ended at the end of the test if
    still there."""
    def __init__(self, command, env, options):
        self.command = command_text(command)
        self.files = [tempfile.TemporaryFile() for _ in range(2)]
        streams = {'stdin': subprocess.PIPE, 'stdout': self.files[0], 'stderr': self.files[1]}
        try:
            self.popen = subprocess.Popen([str(word) for word in command], env={**os.environ, **(env or {})},
                                          **{**streams, **demote(options)})
        except PermissionError:
            if options.get('user') is None:
                raise
            skip(f'user {options["user"]} may not run {command[0]}: this checkout is not readable for others')
        self.pid = self.popen.pid
        at_end(self.kill)

    def output(self, which=0):
        """What it has written so far to stdout (0) or stderr (1)."""
        file = self.files[which]
        size = os.fstat(file.fileno()).st_size
        return os.pread(file.fileno(), size, 0).decode(errors='replace')

    @property
    def out(self):
        return self.output(0)

    @property
    def err(self):
        return self.output(1)

    def is_alive(self):
        return self.popen.poll() is None

    def wait_for(self, pattern, which=0, seconds=60):
        """Until the output has `pattern`; its match."""
        def found():
            match = re.search(pattern, self.output(which), re.MULTILINE)
            if not match and not self.is_alive():
                match = re.search(pattern, self.output(which), re.MULTILINE)
                check(match, f'ended without writing /{pattern}/', self.result())
            return match

        return eventually(found, lambda: f'{self.command} writes /{pattern}/; so far:\n{self.out}{self.err}', seconds)

    def send(self, text):
        self.popen.stdin.write(text.encode())
        self.popen.stdin.flush()

    def signal(self, number):
        self.popen.send_signal(number)

    def result(self):
        return Result(self.command, self.popen.returncode, self.out, self.err)

    def end(self, number=None, input='', seconds=60):
        """Send it signal `number` if given, and `input` and the end of stdin, and wait until it has ended."""
        if number is not None:
            self.signal(number)
        try:
            if input:
                self.send(input)
            if self.popen.stdin:
                self.popen.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            fail(f'still running after {seconds} s: {self.command}\n{self.out}{self.err}')
        return self.result()

    def kill(self):
        if self.popen.poll() is None:
            killed_ids.add(self.pid)
            self.popen.kill()
            self.popen.wait()
        if self.popen.stdin and not self.popen.stdin.closed:
            try:
                self.popen.stdin.close()
            except BrokenPipeError:
                pass
        for file in self.files:
            file.close()


def run_on_terminal(*command, columns=100, rows=30, env=None, seconds=60, after=None):
    """Run with a terminal as stdin, stdout and stderr; all that was written is in `out`. `after(process, text)` is
    called with what has come so far, each time that something comes."""
    master, slave = pty.openpty()
    import fcntl
    import struct
    import termios
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
    environment = {**os.environ, 'TERM': 'xterm-256color', **(env or {})}
    popen = subprocess.Popen([str(word) for word in command], stdin=slave, stdout=slave, stderr=slave, env=environment,
                             start_new_session=True)
    os.close(slave)
    at_end(lambda: popen.poll() is None and popen.kill())
    text, deadline, has_ended = b'', time.monotonic() + seconds, False
    while True:
        check(time.monotonic() < deadline, f'still running after {seconds} s: {command_text(command)}', text.decode())
        if not select.select([master], [], [], 0.2)[0]:
            if has_ended:  # a look ago, so that its last words would have come
                break
            has_ended = popen.poll() is not None
            continue
        try:
            part = os.read(master, 65536)
        except OSError:  # EIO: the last one has closed its side
            break
        if not part:
            break
        text += part
        if after:
            after(popen, text.decode(errors='replace'))
    os.close(master)
    return Result(command_text(command), popen.wait(seconds), text.decode(errors='replace').replace('\r\n', '\n'), '')


def program(name):
    """The path of an installed program; the test is skipped where there is none."""
    return shutil.which(name) or skip(f'{name} is not installed')


def need_32_bit_programs():
    try:
        start(target_path('tiny32')).kill()  # it sleeps for a minute
    except OSError:
        skip('this kernel runs no 32-bit programs')


def need_root():
    if os.geteuid():
        skip('needs root')


def need_uprobes():
    """The kernel's, and the right to set them."""
    need_root()
    if not Path('/sys/bus/event_source/devices/uprobe').exists():
        skip('this kernel has no uprobes for perf events')


def may_read_fs_base():
    """Whether a program may: by AT_HWCAP2 (getauxval(3)). It may not before Linux 5.9, or where a hypervisor says so.
    """
    AT_HWCAP2, FSGSBASE = 26, 2
    words = struct.iter_unpack('@LL', Path('/proc/self/auxv').read_bytes())
    return bool(dict(words).get(AT_HWCAP2, 0) & FSGSBASE)


def target_path(name):
    path = TARGETS / name
    check(path.exists(), f'{path} is not built')
    return str(path)


def target(name, *args, ready=True, **options):
    """Start tests/targets/NAME and wait until it says that it is ready."""
    process = start(target_path(name), *args, **options)
    if ready:
        process.wait_for(r'^ready$')
    return process


def sleeper(**options):
    """A program that sleeps, in its system call already."""
    process = start('sleep', 1000, **options)
    eventually(lambda: processes.call(process.pid) == SYS_CLOCK_NANOSLEEP, 'it sleeps')
    return process


# ---- kymo ----------------------------------------------------------------------------------------


def kymo(*args, **options):
    return run(KYMO, *args, **options)


def record(*args, **options):
    """kymo record into kymo.data of the test's directory, to its end."""
    return kymo('record', *args, **options)


def is_recorded(pid):
    """Whether probes are in, and the process is no longer traced."""
    return processes.changed_text(pid) and processes.tracer(pid) == 0


def start_record(pid, *args, **options):
    """kymo record --pid PID …, once all probes are in, the process is no longer traced, and the trace has begun."""
    process = start(KYMO, 'record', *args, '--pid', pid, **options)

    def is_recording():
        if not process.is_alive():
            fail(f'the recorder ended before its probes were in\n{process.result()}')
        return is_recorded(pid) and processes.has_trace(process.pid)

    eventually(is_recording, f'{process.command} has put its probes in', 60)
    return process


_THREAD = re.compile(r'^\[[^\]]*\] \(\+[^)]*\) kymo:thread: .* tid = (?P<tid>-?\d+) \}$')


def event_lines(text):
    """The lines of babeltrace2's output that are events: all but those of threads."""
    return [line for line in text.splitlines() if not _THREAD.match(line)]


def babeltrace(directory='kymo.data', *args, may_be_lost='lost_in_vforks'):
    """The lines that babeltrace2 prints of a trace, but those of threads, which are no events. Any word on its stderr
    is a failure: traces open without a warning. But hits of vfork children are told by it as losses, and `may_be_lost`
    may name others of the report's; those must be as many as the report says."""
    with tempfile.TemporaryFile('w+') as err:
        popen = subprocess.Popen([program('babeltrace2'), *args, str(directory)], stdout=subprocess.PIPE, stderr=err,
                                 text=True)
        at_end(lambda: popen.poll() is None and popen.kill())
        for line in popen.stdout:
            if not _THREAD.match(line):
                yield line.rstrip('\n')
        popen.stdout.close()
        popen.wait()
        err.seek(0)
        warnings = err.read()
        discarded = [
            re.match(r'WARNING: Tracer discarded (\d+) events? between ', line) for line in warnings.splitlines()
        ]
        if warnings and all(discarded):
            check_equal(sum(int(match[1]) for match in discarded),
                        report_json(directory)[may_be_lost], 'lost events by babeltrace2')
            warnings = ''
        check(popen.returncode == 0 and not warnings, f'babeltrace2 {directory}: exit status {popen.returncode}',
              warnings)


_EVENT = re.compile(r'^\[(?P<time>[^\]]*)\] \(\+[^)]*\) (?:(?P<host>\S+) )?(?P<name>\S+): (?P<fields>\{.*)$')


class Event:
    """One line of babeltrace2, taken apart."""
    def __init__(self, line):
        match = _EVENT.match(line)
        check(match, f'babeltrace2 prints an event in an unexpected way: {line}')
        self.line, self.name, self.time = line, match['name'], match['time']
        self.fields = {
            name.removeprefix('_'): value.rstrip(',') for name, value in re.findall(
                r'(\w+) = (\( .*? : container = -?\d+ \)|"(?:[^"\\]|\\.)*"|[^\s}]+)', match['fields'])
        }

    def __getitem__(self, field):
        """An integer field. Hexadecimal ones are unsigned."""
        check(field in self.fields, f'the event has no field {field}: {self.line}')
        enumerated = re.search(r' : container = (-?\d+) \)$', self.fields[field])
        return int(enumerated[1] if enumerated else self.fields[field], 0)

    def named(self, field):
        """What an enumeration calls the value; '<unknown>' of one without a name."""
        return self.fields[field].removeprefix('( ').partition(' : container')[0].strip('"')


def _with_threads(directory):
    """The events of each stream, with the tid that the last thread's record of the stream said."""
    for stream in sorted(Path(directory).iterdir()):
        if stream.name == 'metadata' or stream.name.startswith('.'):
            continue
        with tempfile.TemporaryDirectory() as alone:
            for name in ('metadata', stream.name):
                Path(alone, name).symlink_to(stream.with_name(name).absolute())
            run = subprocess.run([program('babeltrace2'), alone], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 text=True, check=True)
        found, tid = [], None
        for line in run.stdout.splitlines():
            thread = _THREAD.match(line)
            if thread:
                tid = thread['tid']
                continue
            found.append(Event(line))
            check(tid is not None, f'{stream.name}: a record comes before the first thread')
            found[-1].fields['tid'] = tid
        yield found


def events(directory='kymo.data'):
    """All events in the order of time; for traces that fit into memory."""
    whole = [Event(line) for line in babeltrace(directory)]
    if 'kymo_format = 2;' not in Path(directory, 'metadata').read_text():
        return whole
    found = list(heapq.merge(*_with_threads(directory), key=lambda event: event.time))
    check_equal(len(found), len(whole), 'events of all streams')
    return found


def event_counts(directory='kymo.data'):
    """How many of each name, by babeltrace2."""
    counts = collections.Counter()
    for line in babeltrace(directory):
        match = _EVENT.match(line)
        check(match, f'babeltrace2 prints an event in an unexpected way: {line}')
        counts[match['name']] += 1
    return counts


def report_json(directory='kymo.data'):
    """The summary's numbers, with names as the trace has them: other tools know no others."""
    return json.loads(kymo('report', '--json', '--no-demangle', directory).ok().out)


def probe_counts(directory='kymo.data'):
    """{name: count} of all probes, those too that were never hit."""
    return {probe['name']: probe['count'] for probe in report_json(directory)['probes']}


def are_traced_by(pid, tracer):
    """For each thread of the process whether a kymo syscalls has engines on it: its worker has them."""
    workers = processes.children(tracer.pid)
    threads = json.loads(kymo('threads', '--json', pid).out or '{"threads": []}')['threads']
    return [any(engine['owner'] in workers for engine in thread['engines'] or []) for thread in threads]


def has_joined(pid, tracer):
    return any(are_traced_by(pid, tracer))


def is_on_all_threads(pid, tracer):
    """A peer of another process' hub comes to one after the other."""
    are = are_traced_by(pid, tracer)
    return bool(are) and all(are)


RECORD_SIZE = 160  # bytes: no record of up to six arguments takes more, if it is the only one of its packet


def wait_for_records(directory='kymo.data', n=101):
    """Until a recording that goes on has written so many: how soon depends on the machine. By the size of its streams,
    as a reader may never come to the end of one that grows."""
    def are_there():
        return sum(path.stat().st_size for path in Path(directory).glob('stream_*')) > RECORD_SIZE * n

    eventually(are_there, f'{n} records in {directory}', 90)


def record_some(directory, pid, *args, n=101):
    """A recording of a process that is ended when it has so many records."""
    recorder = start(KYMO, 'record', '-o', directory, *args, '--pid', pid)
    wait_for_records(directory, n)
    return recorder.end(signal.SIGTERM).ok()


# ---- what must hold afterwards -------------------------------------------------------------------


def check_text_intact(pid):
    """Every executable page that the process maps from a file is as the file has it. Kernel uprobes of tests that run
    beside this one put breakpoints into every process that maps their file, until they end."""
    for _ in range(600):
        changed = processes.changed_text(pid)
        if not changed or not all(line.endswith(', memory cc') for line in changed):
            break
        time.sleep(0.1)
    check_same(changed, [], f'text of {pid}')


def check_untraced(pid):
    tracer = processes.tracer(pid)
    check(tracer == 0, f'{pid} is still traced by {tracer}')


def check_undisturbed(command, args, **options):
    """Run `command` bare and under `kymo record ARGS --`: outputs and exit status must be the same. Returns kymo's
    Result. What kymo itself says goes to stderr, in lines that begin with "kymo"."""
    bare = run(*command, **options)
    recorded = record(*args, '--', *command, **options)
    expected = bare.status if bare.status >= 0 else 128 - bare.status  # as shells say it
    check_equal(recorded.status, expected, f'exit status of {bare.command}')
    check_same(recorded.out, bare.out, 'stdout')
    words = [line for line in recorded.err.splitlines() if not line.startswith('kymo')]
    check_same(words, bare.err, 'stderr')
    return recorded
