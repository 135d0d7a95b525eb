/* throwing [N]: throws, catches, throws again and cleans up through frames that a test probes; checks the order of it all. */
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

static long destroyed, caught, rethrown;

struct guard {
	long n;
	explicit guard(long n) : n(n) {}
	~guard() { destroyed += n; }
};

#define PROBED extern "C" __attribute__((noipa, visibility("default")))

PROBED long throw_bottom(long n)
{
	guard g(1);

	if (n % 3 == 0)
		throw std::runtime_error("three");
	if (n % 3 == 1)
		throw n;
	return n;
}

PROBED long throw_middle(long n)
{
	guard g(10);

	try {
		return throw_bottom(n) + g.n;
	} catch (long value) {
		rethrown++;
		guard inner(100);
		if (value % 2)
			throw;
		throw std::string("even");
	}
}

PROBED long throw_deep(long depth, long n)
{
	guard g(1000);

	return depth ? throw_deep(depth - 1, n) + 1 : throw_middle(n);
}

PROBED long throw_top(long n)
{
	try {
		return throw_deep(n % 5, n) - n % 5;
	} catch (const std::runtime_error &error) {
		caught++;
		return -3;
	} catch (const std::string &text) {
		caught++;
		return -(long)text.size();
	} catch (long value) {
		caught++;
		return -value;
	}
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 300, expected_caught = 0, expected_rethrown = 0, expected_destroyed = 0;

	for (long i = 0; i < n; i++) {
		long expected = i % 3 == 2 ? i + 10 : i % 3 == 0 ? -3 : i % 2 ? -i : -4;

		if (throw_top(i) != expected) {
			fprintf(stderr, "wrong result for %ld\n", i);
			return 3;
		}
		expected_caught += i % 3 != 2;
		expected_rethrown += i % 3 == 1;
		expected_destroyed += 11 + 1000 * (i % 5 + 1) + (i % 3 == 1 ? 100 : 0);
	}
	if (caught != expected_caught || rethrown != expected_rethrown || destroyed != expected_destroyed) {
		fprintf(stderr, "wrong counts: %ld %ld %ld\n", caught, rethrown, destroyed);
		return 3;
	}
	printf("{\"throw_top\": %ld, \"caught\": %ld, \"rethrown\": %ld}\n", n, caught, rethrown);
	return 0;
}
