/*
 * A library for attach_target.c and toggle.c: 1,001 functions with a marker each, one of them called toggle_one and the
 * others toggle_many.
 */
#include <kymo/marker.h>

typedef long many_function(int a, long b);

extern many_function *const many_table[];
extern const unsigned int many_count;

#define TEN(f, n) f(n##0) f(n##1) f(n##2) f(n##3) f(n##4) f(n##5) f(n##6) f(n##7) f(n##8) f(n##9)
#define HUNDRED(f, n) \
	TEN(f, n##0) \
	TEN(f, n##1) \
	TEN(f, n##2) TEN(f, n##3) TEN(f, n##4) TEN(f, n##5) TEN(f, n##6) TEN(f, n##7) TEN(f, n##8) TEN(f, n##9)
#define THOUSAND(f) \
	HUNDRED(f, 10) \
	HUNDRED(f, 11) \
	HUNDRED(f, 12) \
	HUNDRED(f, 13) HUNDRED(f, 14) HUNDRED(f, 15) HUNDRED(f, 16) HUNDRED(f, 17) HUNDRED(f, 18) HUNDRED(f, 19)

#define FUNCTION(n) \
	static long marked_##n(int a, long b) \
	{ \
		MARK(toggle_many, "a=%d b=%ld", a, b); \
		return a + b * n; \
	}
#define NAME(n) marked_##n,

THOUSAND(FUNCTION)

static long marked_once(int a, long b)
{
	MARK(toggle_one, "a=%d b=%ld", a, b);
	return a - b;
}

many_function *const many_table[] = { THOUSAND(NAME) marked_once };
const unsigned int many_count = sizeof(many_table) / sizeof(many_table[0]);
