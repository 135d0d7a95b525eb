"""Random instructions of code that runs. Seeded by the clock; KYMO_SEED=N repeats a run, PROBES=N asks for so many at
least."""
import os

import randomly
from kymotest import TORTURE_SECONDS, timeout
from seeds import seed

AT_LEAST = int(os.environ.get('PROBES') or 0)
KINDS = ['sqlite', 'zstd', 'libc', 'zlib', 'python', 'lzma']


@timeout(14400)
def test_one_probe_at_a_time_on_random_instructions(tmp):
    seed()
    randomly.one_at_a_time(KINDS[:2] if TORTURE_SECONDS <= 10 else KINDS, TORTURE_SECONDS, tmp, AT_LEAST)


@timeout(14400)
def test_a_thousand_probes_at_once_on_random_instructions(tmp):
    seed()
    randomly.many_at_once(
        randomly.prepare(tmp)[:2 if TORTURE_SECONDS <= 10 else None], TORTURE_SECONDS, at_least=AT_LEAST)
