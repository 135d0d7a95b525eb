"""Seeds of tests that choose at random."""
import os
import random
import sys
import time


def seed():
    """From the clock, or KYMO_SEED; told either way."""
    number = int(os.environ.get('KYMO_SEED') or time.time_ns() & 0xffffffff)
    print(f'KYMO_SEED={number}', file=sys.stderr)
    random.seed(number)
    return number
