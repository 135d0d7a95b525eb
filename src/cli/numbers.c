#include "cli/numbers.h"

#include <stdlib.h>
#include <string.h>

/* The kernel's PID_MAX_LIMIT. */
#define PID_LIMIT (UINT64_C(1) << 22)

/* Ten years; keeps nanoseconds within 64 bits. */
#define SECONDS_LIMIT 315360000.0

/* Digits at the start of `text`; `end_ret` is what follows. False without a digit, or beyond 64 bits. */
static bool parse_digits(const char *text, const char **end_ret, uint64_t *ret)
{
	uint64_t value = 0;
	const char *at = text;

	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
			return false;
	*end_ret = at;
	*ret = value;
	return at > text;
}

bool cli_parse_number(const char *text, uint64_t *ret)
{
	const char *end;
	uint64_t value;

	if (!parse_digits(text, &end, &value) || *end)
		return false;
	*ret = value;
	return true;
}

bool cli_parse_pid(const char *text, pid_t *ret)
{
	uint64_t value;

	if (!cli_parse_number(text, &value) || !value || value > PID_LIMIT)
		return false;
	*ret = (pid_t)value;
	return true;
}

bool cli_parse_size(const char *text, uint64_t *ret)
{
	static const char units[] = "KkMmGg";
	const char *end, *unit;
	uint64_t value;

	if (!parse_digits(text, &end, &value))
		return false;
	if (*end) {
		unit = strchr(units, *end);
		if (!unit || end[1] ||
		    __builtin_mul_overflow(value, UINT64_C(1) << (10 * (1 + (unit - units) / 2)), &value))
			return false;
	}
	*ret = value;
	return true;
}

bool cli_parse_seconds(const char *text, double *ret)
{
	size_t whole = strspn(text, "0123456789"), fraction = 0;
	double value;

	if (text[whole] == '.') {
		fraction = strspn(text + whole + 1, "0123456789");
		if (text[whole + 1 + fraction])
			return false;
	} else if (text[whole]) {
		return false;
	}
	if (!whole && !fraction)
		return false;
	value = strtod(text, NULL);
	if (!(value > 0 && value <= SECONDS_LIMIT))
		return false;
	*ret = value;
	return true;
}
