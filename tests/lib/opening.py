"""Libraries that are opened and closed all the time, by `dlopener`, and recordings of them for TORTURE_SECONDS."""
import random
import time

import remains
from kymotest import (KYMO, TORTURE_SECONDS, check, check_equal, clean_up_after, event_counts, record, report_json, run,
                      skip, target_path)
from recorders import LATE

CALLS = 111  # of ctor_work, and passes of lib_work, each time that the library is opened


def record_each(library, words, counts, most):
    """Of programs that open it up to `most` times. Nothing is missed, and nothing else is hit where it was; `counts`
    are of one opening. Fewer times where a loaded machine has let a program wait for its recorder in vain, which is
    said."""
    end, n, n_late = time.monotonic() + TORTURE_SECONDS, 0, 0
    while n == 0 or time.monotonic() < end:
        if n == 0 and n_late > 20:
            skip('on this machine, as loaded as it is, recorders do not get their turn in time')
        rounds = random.randint(1, most)
        with clean_up_after():
            result = record(*words, '--', target_path('dlopener'), target_path(library), rounds).ok()
            check_equal(result.json(), {'ctor_work': rounds * CALLS})
            if LATE in result.err:
                most = max(1, most // 2)
                n_late += 1
                continue
            check_equal(event_counts(), {event: count * rounds for event, count in counts.items()}, 'counts')
            check_equal(report_json()['lost_events'], 0, 'lost')
            n += 1


def come_and_go(process, directory, choices, absent):
    """Recordings of a program that opens and closes a library for ever, each with one of `choices`. It may not be
    there just now: then one of `absent` is said."""
    end, n = time.monotonic() + TORTURE_SECONDS, 0
    while time.monotonic() < end or not n:
        with clean_up_after():
            result = run(KYMO, 'record', '-q', '-o', directory / 'some', *random.choice(choices), '--pid', process.pid,
                         '--for', f'{random.random() * 0.05 + 0.001:.3f}')
        check(process.is_alive(), 'the program goes on', process.result())
        check(result.status == 0 or any(words in result.err for words in absent),
              'it records, or says that there is nothing of the name', result)
        check(not remains.descriptors(process.pid), 'descriptors')
        n += result.status == 0
