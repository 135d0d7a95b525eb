/*
 * Markers of all kinds in C; marker_by_hand.c has main().
 */
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "marker_forms.h"

enum colour { RED, GREEN = 7 };

struct bits {
	unsigned int low : 3;
	int high : 5;
};

struct event {
	int number;
	const char *text;
	char name[8];
};

int forms_evaluated;
static unsigned int sum;
static volatile int three = 3; /* compilers don't know */
static const char *volatile no_text;

int forms_evaluate(int x)
{
	forms_evaluated++;
	return x;
}

extern inline int forms_inline(int a);

static void add(long long x)
{
	sum = sum * 31 + (unsigned int)x;
}

__attribute__((constructor)) static void construct(void)
{
	MARK(constructor, "%d", forms_evaluate(1));
}

static void integers(signed char c, unsigned char uc, short s, unsigned short us, int i, unsigned int u, bool b,
		     enum colour e)
{
	MARK(integers, "%d %d %d %d %d %u b=%d e=%u", c, uc, s, us, i, u, b, e);
	add(c + uc + s + us + i + b);
	add((long long)u + e);
}

static void longs(long l, unsigned long ul, long long ll, unsigned long long ull, size_t z)
{
	MARK(longs, "l=%ld ul=%lu ll=%lld ull=%llx z=%zu", l, ul, ll, ull, z);
	add(l + ll);
	add((long long)(ul + ull + z));
}

static double floats(float f, double d)
{
	MARK(floats, "%f %g %e %f", (double)f, d, d * 2, (double)(f + 1));
	return d - (double)f;
}

static struct event an_event(void)
{
	return (struct event){ 6, "other", "brief" };
}

static void strings(const char *text, char *own, struct event *event)
{
	char local[16];

	strcpy(local, text);
	MARK(strings, "%s %s %s %s %d", text, own, local, event->text, event->number);
	MARK(one_string, "s=%s", event->name);
	MARK(temporary, "s=%s", an_event().name);
	MARK(quoted,
	     "\"s\"=%s"
	     " 100%%\t\\",
	     text);
	MARK(no_string, "%d %s %d", three, no_text, three + 1);
	MARK(pointers, "%p %p", (void *)0x1234, (const volatile void *)0);
	add(local[0] + own[1] + event->name[2]);
}

static void bits(struct bits bits)
{
	MARK(bits, "%u %d", bits.low, bits.high);
	add(bits.low + bits.high);
}

/* The values of xmm registers, of the red zone, and all that calls would change, live on across the marker. */
static double live(const double *x, const long *y, int n)
{
	double a = x[0], b = x[1], c = x[2], d = x[3];
	long i = y[0], j = y[1], k = y[2], l = y[3], m = y[4], o = y[5];

	for (int turn = 0; turn < n; turn++) {
		MARK(live, "%d %ld %f", turn, i, a);
		a += b;
		b += c;
		c += d;
		i += j;
		j += k;
		k += l;
		l += m;
		m += o;
		o += turn;
	}
	return a + b + c + d + (double)(i + j + k + l + m + o);
}

static int leaf(int a, int b)
{
	int kept[8];

	for (int i = 0; i < 8; i++)
		kept[i] = a * i;
	MARK(leaf, "%d %d", a + b, a * b);
	for (int i = 0; i < 8; i++)
		b ^= kept[i & three];
	return b;
}

static int eight(int a, int b, int c, int d, int e, int f, int g, int h)
{
	MARK(eight, "%d %d %d %d %d %d %d %d", a, b, c, d, e, f, g, h);
	return a + b - c + d - e + f - g + h;
}

static int with_strings(int a, const char *b, double c, long d, const char *e, unsigned int f, const char *g, void *h)
{
	MARK(mixed, "a=%d b=%s c=%f d=%ld e=%s f=%u g=%s h=%p", a, b, c, d, e, f, g, h);
	return a + b[0] + e[0] + g[0];
}

static void unrolled(void)
{
#ifndef __clang__ /* which warns where it does not */
#pragma GCC unroll 4
#endif
	for (int i = 0; i < 4; i++)
		MARK(unrolled, "%d", i);
}

static int recursive(int n)
{
	MARK(recursive, "%d", n);
	return n ? recursive(n - 1) + 1 : 0;
}

static int in_variable_array(unsigned char size)
{
	int n = size % 8 ? size % 8 : 1;
	char array[n];

	__builtin_memset(array, 0, (size_t)n);
	array[0] = (char)n;
	for (int i = 1; i < n; i++)
		array[i] = array[0];
	MARK(variable_array, "%d", array[0]);
	for (int i = 0; i < n; i++) {
		char inner[n + i];

		inner[0] = array[i];
		MARK(inner_array, "%d", inner[0] + i);
	}
	return array[n - 1];
}

static void variadic(int n, ...)
{
	va_list list;

	va_start(list, n);
	for (int i = 0; i < n; i++)
		MARK(variadic, "%d", va_arg(list, int));
	va_end(list);
}

static void clean(int *number)
{
	add(*number);
}

/* Not a scope in which a marker could not be reached from another's. */
static int scopes(int n)
{
	int outer __attribute__((cleanup(clean))) = n;

	MARK(scope, "%d", outer);
	for (int i = 0; i < 2; i++) {
		int inner __attribute__((cleanup(clean))) = i;

		switch (inner) {
		case 0:
			MARK(scope_zero, MARK_NOARGS);
			break;
		default:
			if (n)
				MARK(scope_other, "%d", inner);
			else
				MARK(scope_never, "%d", inner);
		}
	}
	return n;
}

static inline int begins(int a)
{
	MARK(begins, "%d", a);
	return a * 3;
}

/* All ways begin with the same marker, of one line: compilers like to do once what is common. */
static __attribute__((noinline)) int either(int which, int a)
{
	if (which)
		return forms_static_inline(begins(a), "then");
	else
		return forms_static_inline(begins(a), "else") + forms_inline(a);
}

static __attribute__((noinline)) int one_of(int which, int a)
{
	switch (which) {
	case 1:
		return begins(a) + recursive(a & 1);
	case 2:
		return begins(a);
	case 3:
		return begins(a) + forms_inline(a);
	case 4:
		return begins(a) + recursive(a & 3);
	default:
		return 0;
	}
}

unsigned int forms_run(void)
{
	struct event event = { 5, "event", "name" };
	char own[] = "own";
	double x[] = { 1.5, 0.25, 0.5, 1 };
	long y[] = { 1, 2, 3, 4, 5, 6 };

	MARK(begin, MARK_NOARGS);
	sum = 1;
	integers(-1, 200, -300, 60000, -5, 4000000000u, true, GREEN);
	longs(-6, 4000000000ul, -7000000000ll, 0x123456789abcdefull, 8);
	add((long long)(floats(0.5f, 3.25) * 4));
	strings("text", own, &event);
	bits((struct bits){ 5, -3 });
	add((long long)(live(x, y, three) * 4));
	add(leaf(three, 4));
	add(eight(three, 2, 3, 4, 5, 6, 7, 8));
	add(with_strings(1, "b", 0.125, -4, "e", 6, "g", (void *)8));
	unrolled();
	add(recursive(three));
	add(in_variable_array((unsigned char)three));
	variadic(2, 10, 20);
	add(scopes(three));
	add(either(three, 40) + either(three - 3, 41));
	add(one_of(three, 42) + one_of(three - 1, 43));
	add(forms_inline(three));
	MARK(effects, "%d %d", forms_evaluate(1), forms_evaluate(2));
	MARK(end, "sum=%u", sum);
	return sum;
}
