#!/usr/bin/env python3
"""one.py FILE FUNCTION: run one test function in this process, in a fresh directory, and clean up after it.

A parameter named `tmp` gets that directory, as a Path. Exit status 0: ok; 77: skipped, the reason is the last line
of stderr; 1: failed. A test also fails when it leaves processes behind, or when a sanitizer wrote a report for any
process it ran.
"""
import importlib.util
import os
import re
import shutil
import signal
import sys
import tempfile
from pathlib import Path

if modules := os.environ.pop('KYMO_TEST_MODULES', ''):  # for this process, and none that it runs
    sys.pycache_prefix, sys.dont_write_bytecode = modules, False

import kymotest  # noqa: E402: kept there
import processes  # noqa: E402


def on_sigterm(number, frame):
    raise TimeoutError('the runner ended this test: it took too long, or was interrupted')


def load(path):
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def call(function, tmp):
    given = {'tmp': tmp}
    code = function.__code__  # the module inspect takes a fifth of such a process' start
    function(**{name: given[name] for name in code.co_varnames[:code.co_argcount]})


def explain(error):
    """The reason alone for what a test says itself, the whole way there for what it did not expect."""
    import traceback  # not at each start
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, kymotest.Failure):
        own = [frame for frame in frames if Path(frame.filename).parent != Path(__file__).parent]
        where = own[-1] if own else frames[-1]
        return f'{where.filename}:{where.lineno}: {where.line}\n{error}'
    return ''.join(traceback.format_exception(error))


def is_cut_short(pid, report):
    """What a search for leaks says, at a process' end, when the end of the test comes into it."""
    return pid in kymotest.killed_ids and all(
        re.fullmatch(r'==\d+==Unable to get registers from thread \d+\.', line) for line in report.splitlines())


def sanitizer_reports(directory):
    texts = {path.name: path.read_text(errors='replace') for path in sorted(directory.iterdir())}
    return [f'{name}:\n{text}' for name, text in texts.items() if not is_cut_short(int(name.rpartition('.')[2]), text)]


def run(path, name, tmp, reports):
    """The failures of one test, as texts; kymotest.Skip passes through."""
    failures = []
    try:
        call(getattr(load(path), name), tmp)
    except kymotest.Skip:
        raise
    except (Exception, SystemExit) as error:
        failures.append(explain(error))
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        failures += kymotest.clean_up()
        left = processes.end_descendants()
        if left and not failures:
            failures.append('processes left behind:\n' + '\n'.join(left))
        failures += sanitizer_reports(reports)
    return failures


def main():
    path, name = Path(sys.argv[1]).resolve(), sys.argv[2]
    signal.signal(signal.SIGTERM, on_sigterm)
    processes.adopt_orphans()
    base = Path(tempfile.mkdtemp(prefix='test.'))
    base.chmod(0o755)
    tmp, reports = base / 'tmp', base / 'reports'
    tmp.mkdir()
    reports.mkdir(mode=0o777)
    reports.chmod(0o777)
    for variable in ('ASAN_OPTIONS', 'UBSAN_OPTIONS'):
        os.environ[variable] = f'{os.environ.get(variable, "")}:log_path={reports}/report'
    os.environ['TMPDIR'] = tempfile.tempdir = str(tmp)
    os.chdir(tmp)
    try:
        failures = run(path, name, tmp, reports)
    except kymotest.Skip as reason:
        print(reason, file=sys.stderr)
        return 77
    finally:
        os.chdir('/')
        shutil.rmtree(base, ignore_errors=True)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
