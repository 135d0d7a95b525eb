// Exceptions through functions that have something to destroy: landing pads, and parts that were split off.
#include <stdexcept>

namespace {

long destroyed;

struct Guard {
	long by;
	~Guard() { destroyed += by; }
};

__attribute__((noinline)) long fail(long n)
{
	if (n % 3 == 0)
		throw std::runtime_error("three");
	if (n % 7 == 0)
		throw n;
	return n;
}

__attribute__((noinline)) long inner(long n)
{
	Guard guard{ n };

	return fail(n) + (n & 1 ? fail(n + 1) : 0);
}

} // namespace

extern "C" long kernel_throw(long n)
{
	long sum = 0;

	destroyed = 0;
	for (long i = 0; i < n; i++) {
		try {
			sum += inner(i);
		} catch (const std::exception &) {
			sum += 1000;
		} catch (long which) {
			sum -= which;
		}
	}
	return sum + destroyed;
}
