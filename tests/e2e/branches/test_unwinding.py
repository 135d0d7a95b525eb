"""Function clones of all that a program executes while calls are left other than by returns."""
import json
import shutil
from pathlib import Path

from kymotest import check, check_equal, kymo, record, run, skip, timeout

HERE = Path(__file__).parent
CLONES = ('--branch-source', 'clones')


def check_cloned(program):
    bare = run(program).ok()
    for what in ('all', Path(program).name):
        result = record('-q', '-b', what, *CLONES, '-o', f'{what}.data', '--', program)
        check_equal((result.status, result.out), (0, bare.out), f'-b {what}')
        threads = json.loads(kymo('branches', '--json', f'{what}.data').ok().out)['threads']
        check(len(threads[0]['branches']) > 100, 'a history', what)


@timeout(120)
def test_exceptions_in_cpp(tmp):
    """Their unwinder asks for the shadow stack by an instruction that does nothing where there is none. Landing pads
    may begin with an endbr64, which is executed in place."""
    if not shutil.which('g++'):
        skip('needs g++')
    for level in ('-O0', '-O2', '-O2 -fcf-protection=full'):
        run('g++', *level.split(), '-pthread', '-o', tmp / 'thrown', HERE / 'thrown.cc').ok()
        check_cloned('./thrown')


@timeout(120)
def test_leaps_and_cancellation_in_c(tmp):
    for level in ('-O0', '-O2'):
        run('gcc', level, '-fexceptions', '-pthread', '-o', tmp / 'unwound', HERE / 'unwound.c').ok()
        check_cloned('./unwound')
