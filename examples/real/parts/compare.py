"""Two ways of running the same thing, run in turn: how much longer one takes, and how sure that is."""
import math
import statistics

CONFIDENCE = 0.95


def interval(values):
    """(low, high, coverage) around the median of `values`, from their order alone: the k-th smallest and the k-th
    largest.

    The median of what they are drawn from lies below the k-th smallest with the probability that fewer than k of n
    coins show heads. The largest k that leaves CONFIDENCE or more is taken; below six values there is none, and it
    is 1.
    """
    values, n = sorted(values), len(values)
    outside, k = 0.0, 0
    while k < n // 2 and outside + 2 * math.comb(n, k) / 2**n <= 1 - CONFIDENCE:
        outside += 2 * math.comb(n, k) / 2**n
        k += 1
    if k == 0:
        k, outside = 1, min(1.0, 2 / 2**n)
    return values[k - 1], values[-k], 1 - outside


class Difference:
    """Of times, `other` less `plain`, in pairs that were run one after the other: percent of the plain one, and ns."""
    def __init__(self, plain, other):
        self.percents = [100 * (b / a - 1) for a, b in zip(plain, other)]
        self.ns = [b - a for a, b in zip(plain, other)]

    def shown(self):
        low, high, _ = interval(self.percents)
        return not low <= 0 <= high

    def verdict(self):
        if not self.shown():
            return "not measurable"
        return "slower" if statistics.median(self.percents) > 0 else "faster"

    def text_percent(self):
        low, high, _ = interval(self.percents)
        return f"{statistics.median(self.percents):+.2f} [{low:+.2f}, {high:+.2f}]"

    def text_ns(self):
        low, high, _ = interval(self.ns)
        digits = 0 if max(abs(low), abs(high)) >= 100 else 1
        return f"{statistics.median(self.ns):+,.{digits}f} [{low:+,.{digits}f}, {high:+,.{digits}f}]"
