/* What to inject, as users write it. */
#include "syscall/inject.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/caret.h"
#include "base/cleanup.h"
#include "syscall/errors.h"
#include "syscall/sets.h"
#include "syscall/signal_names.h"

enum { VALUE_SIZE = 48, ERRNO_MAX = 4095, COUNT_MAX = 65535 };

static const uint64_t delay_max_ns = 1000000ull * 1000000000ull;

struct reading {
	const char *text;
	const char *at; /* of the value, in the text */
	char value[VALUE_SIZE];
	struct kymo_syscall_injection to;
	bool does_anything;
};

/* ---- values ---------------------------------------------------------------------------------- */

/* Decimal digits alone. */
static bool read_decimal(const char *text, const char **end_ret, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	*end_ret = end;
	return *text >= '0' && *text <= '9' && !errno;
}

static bool read_small(const char *text, unsigned max, unsigned *ret)
{
	const char *end;
	uint64_t number;

	if (!read_decimal(text, &end, &number) || *end || !number || number > max)
		return false;
	*ret = (unsigned)number;
	return true;
}

static struct kymo_error *take_result(struct reading *r, int64_t result)
{
	if (r->to.has_result)
		return kymo_error_at(r->text, r->at, "a call has one result: there is an error= or retval= before");
	r->to.has_result = true;
	r->to.result = result;
	return NULL;
}

static struct kymo_error *take_error(struct reading *r)
{
	unsigned number;

	if (read_small(r->value, ERRNO_MAX, &number))
		return take_result(r, -(int64_t)number);
	for (number = 1; number <= ERRNO_MAX; number++)
		if (kymo_syscall_errno((int)number) && !strcmp(kymo_syscall_errno((int)number), r->value))
			return take_result(r, -(int64_t)number);
	return kymo_error_at(r->text, r->at,
			     "there is no error '%s'; write a name such as ENOENT, or a number from 1 to %d", r->value,
			     ERRNO_MAX);
}

static struct kymo_error *take_retval(struct reading *r)
{
	uint64_t number;
	char *end;

	errno = 0;
	number = strtoull(r->value, &end, 0);
	if (errno || *end || end == r->value || !strchr("-0123456789", *r->value))
		return kymo_error_at(r->text, r->at, "'%s' is no number of 64 bits to return", r->value);
	if (number > UINT64_MAX - ERRNO_MAX)
		return kymo_error_at(r->text, r->at, "a call that returns %s has failed: write error=%llu", r->value,
				     (unsigned long long)-number);
	return take_result(r, (int64_t)number);
}

static struct kymo_error *take_signal(struct reading *r)
{
	unsigned number;
	char name[32];

	if (r->to.signal)
		return kymo_error_at(r->text, r->at, "there is a signal= before, and one is sent");
	if (!read_small(r->value, (unsigned)SIGRTMAX, &number))
		for (number = 1; number <= (unsigned)SIGRTMAX; number++) {
			kymo_signal_name((int)number, name);
			if (!strcmp(name, r->value) || (!strncmp(name, "SIG", 3) && !strcmp(name + 3, r->value)))
				break;
		}
	if (number > (unsigned)SIGRTMAX)
		return kymo_error_at(r->text, r->at,
				     "there is no signal '%s'; write a name such as SIGUSR1, or a number from 1 to %d",
				     r->value, SIGRTMAX);
	r->to.signal = (int)number;
	return NULL;
}

static struct kymo_error *take_delay(struct reading *r, uint64_t *ret)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "", 1000 }, { "us", 1000 }, { "ns", 1 }, { "ms", 1000000 }, { "s", 1000000000 } };
	const char *end;
	uint64_t number;

	if (!read_decimal(r->value, &end, &number))
		return kymo_error_at(r->text, r->at,
				     "'%s' is no time; write microseconds, or a number with ns, us, ms or s", r->value);
	for (size_t i = 0; i < kymo_countof(units); i++) {
		if (strcmp(units[i].name, end))
			continue;
		if (number > delay_max_ns / units[i].ns)
			return kymo_error_at(r->text, r->at, "a call is delayed by 1000000 seconds at most");
		*ret = number * units[i].ns;
		return NULL;
	}
	return kymo_error_at(r->text, r->at + (end - r->value), "there is no unit '%s'; write ns, us, ms or s", end);
}

static struct kymo_error *take_delay_enter(struct reading *r)
{
	return take_delay(r, &r->to.delay_enter_ns);
}

static struct kymo_error *take_delay_exit(struct reading *r)
{
	return take_delay(r, &r->to.delay_exit_ns);
}

/* FIRST[..LAST][+[STEP]] */
static struct kymo_error *take_when(struct reading *r)
{
	struct kymo_syscall_injection *to = &r->to;
	char *step = strchr(r->value, '+'), *last;
	bool is_right;

	if (step)
		*step++ = '\0';
	last = strstr(r->value, "..");
	if (last) {
		*last = '\0';
		last += 2;
	}
	is_right = read_small(r->value, COUNT_MAX, &to->first);
	to->last = last || !step ? to->first : UINT32_MAX;
	to->step = 1;
	if (last)
		is_right = is_right && read_small(last, COUNT_MAX - 1, &to->last) && to->last >= to->first;
	if (step && *step)
		is_right = is_right && read_small(step, COUNT_MAX, &to->step);
	return is_right ? NULL
			: kymo_error_at(
				  r->text, r->at,
				  "when= takes FIRST[..LAST][+STEP], numbers of calls from 1 to %d, the last one not "
				  "before the first",
				  COUNT_MAX);
}

bool kymo_syscall_injection_is_due(const struct kymo_syscall_injection *injection, uint32_t nth)
{
	return nth >= injection->first && nth <= injection->last && (nth - injection->first) % injection->step == 0;
}

/* ---- words ----------------------------------------------------------------------------------- */

static const struct word {
	const char *name;
	struct kymo_error *(*take)(struct reading *r);
	bool does_something;
} words[] = {
	{ "error=", take_error, true },           { "retval=", take_retval, true },
	{ "signal=", take_signal, true },         { "delay_enter=", take_delay_enter, true },
	{ "delay_exit=", take_delay_exit, true }, { "when=", take_when, false },
};

static struct kymo_error *take_injection_word(struct reading *r, const char *at, size_t n)
{
	for (size_t i = 0; i < kymo_countof(words); i++) {
		const size_t length = strlen(words[i].name);

		if (n < length || memcmp(at, words[i].name, length))
			continue;
		r->at = at + length;
		if (n - length >= VALUE_SIZE)
			return kymo_error_at(r->text, r->at, "'%.*s' is too long", (int)(n - length), r->at);
		memcpy(r->value, r->at, n - length);
		r->value[n - length] = '\0';
		r->does_anything |= words[i].does_something;
		return words[i].take(r);
	}
	return kymo_error_at(r->text, at,
			     "'%.*s' is not error=, retval=, signal=, when=, delay_enter= or delay_exit=", (int)n, at);
}

static struct kymo_error *take_set(struct reading *r, size_t n)
{
	kymo_cleanup_free char *text = strndup(r->text, n);
	struct kymo_error *error = text ? kymo_syscall_set_parse(text, &r->to.set) : &kymo_error_no_memory, *told;

	if (!error || error->code != KYMO_ERROR_USAGE)
		return error;
	told = kymo_error_at(r->text, r->text, "%s", error->message);
	kymo_error_destroy(error);
	return told;
}

struct kymo_error *kymo_syscall_injection_parse(const char *text, struct kymo_syscall_injection *ret)
{
	struct reading r = { .text = text, .to = { .first = 1, .last = UINT32_MAX, .step = 1 } };
	const char *end = strchrnul(text, ':');
	struct kymo_error *error = take_set(&r, (size_t)(end - text));

	while (!error && *end) {
		const char *at = end + 1;

		end = strchrnul(at, ':');
		error = take_injection_word(&r, at, (size_t)(end - at));
	}
	if (!error && !r.does_anything)
		error = kymo_error_at(
			r.text, end,
			"what is to be injected? add :error=ERRNO, :retval=N, :signal=SIG, :delay_enter=US or "
			":delay_exit=US");
	if (!error)
		*ret = r.to;
	return error;
}
