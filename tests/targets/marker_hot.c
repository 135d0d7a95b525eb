/*
 * Functions whose code must be, but for one NOP a marker, what it is without markers. Compiled by
 * tests/e2e/markers/test_compile.py, never run.
 */
#include <kymo/marker.h>

struct request {
	int fd;
	unsigned int flags;
	long size;
	const char *path;
	double weight;
};

int other(int x);
long another(long a, long b);
void done(struct request *request);

int leaf(int a, int b)
{
	MARK(leaf, "sum=%d product=%d", a + b, a * b);
	return a - b;
}

void nothing(void)
{
	MARK(nothing, MARK_NOARGS);
}

int number_and_string(int a, const char *s)
{
	MARK(number_and_string, "%d %s", a, s);
	return other(a);
}

int loop(int n)
{
	int sum = 0;

	do {
		MARK(loop, "n=%d sum=%d", n, sum);
		sum += other(n);
	} while (--n);
	return sum;
}

long while_loop(const struct request *request)
{
	long sum = 0;

	while (request->fd >= 0) {
		sum += request->size * 3;
		MARK(while_loop, "fd=%d size=%ld", request->fd, request->size);
		request++;
	}
	return sum;
}

int four(int a, long b, const char *c, unsigned int d)
{
	MARK(four, "a=%d b=%ld c=%s d=%x", a, b, c, d);
	return other(a);
}

int eight(const struct request *request, int a, long b, struct request *self)
{
	MARK(eight, "%d %x %ld %s %f %d %ld %d", request->fd, request->flags, request->size, request->path,
	     request->weight, a, b, a + 1);
	done(self);
	return 0;
}

int live(int a, int b)
{
	int product = a * b;

	MARK(live, "product=%d", product);
	return other(product);
}

int live_with_calls(int a)
{
	int b = other(a);

	MARK(live_with_calls, "b=%d", b);
	return b + other(b);
}

double live_floats(const double *x)
{
	double a = x[0], b = x[1], c = x[2], d = x[3];

	MARK(live_floats, "%f", a);
	return (a - b) * (c - d) + (a + c) / (b + d);
}

/* Fast when it fails at once: compilers like to make two functions of it. */
int early(struct request *request)
{
	if (!request || request->fd < 0)
		return -1;
	MARK(early, "fd=%d", request->fd);
	done(request);
	return 0;
}

static inline int helper(struct request *request)
{
	MARK(helper, "fd=%d path=%s", request->fd, request->path);
	return other(request->fd);
}

int inlined(struct request *request)
{
	return helper(request) + helper(request + 1);
}

int address(int n)
{
	int local = n;

	MARK(address, "at=%p", (void *)&local);
	done((struct request *)&local);
	return local;
}
