"""Function clones in programs whose threads are not those of the library alone: contexts, and threads made by hand."""
from pathlib import Path

from kymotest import KYMO_PLAIN, check_matches, record, run

HERE = Path(__file__).parent


def recorded(tmp, *words, mode):
    run('gcc', '-g', '-O1', '-o', tmp / 'contexts', HERE / 'contexts.c').ok()
    return record('-b', 'contexts:spin', '--branch-source', 'clones', *words, '--', './contexts', mode).ok()


def test_clones_stay_until_no_context_is_suspended_in_one(tmp):
    """No thread stands in their code, but one will go on there."""
    recorded(tmp, '--for', '0.5', mode='switch')


def test_a_thread_with_the_control_block_of_its_maker_leaves_that_its_ring(tmp):
    recorded(tmp, mode='raw')


def test_a_program_with_a_limit_of_addresses_is_refused(tmp):
    run('gcc', '-g', '-O1', '-o', tmp / 'contexts', HERE / 'contexts.c').ok()
    words = ['record', '-b', 'contexts:spin', '--branch-source', 'clones', '--', './contexts', 'raw']
    result = run('prlimit', f'--as={4 << 30}', KYMO_PLAIN, *words).ended(1)
    check_matches(result.err, r'those of this program are limited \(ulimit -v\): --branch-source steps')
