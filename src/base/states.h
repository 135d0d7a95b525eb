/*
 * States, and a table of what may follow what: the row of a state has the set of the states that may be next.
 *
 * One function sets the state, and looks into the table first. Builds with sanitizers, which the tests run, end at a
 * change that the table does not have. Others do not look: targets depend on a tracer that goes on.
 */
#ifndef KYMO_BASE_STATES_H
#define KYMO_BASE_STATES_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define KYMO_CHECKS_STATES true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KYMO_CHECKS_STATES true
#endif
#endif
#ifndef KYMO_CHECKS_STATES
#define KYMO_CHECKS_STATES false
#endif

#define KYMO_STATE(state) (1u << (state))

struct kymo_state_row {
	const char *name;
	unsigned int next; /* KYMO_STATE() of each that may follow */
};

/* Whether the table, with a row for each of `n` states, lets `to` follow `from`. */
bool kymo_state_may_follow(const struct kymo_state_row *rows, size_t n, unsigned int from, unsigned int to);

/* Say that of which noun what has followed what, and abort. For builds that look. */
void kymo_state_fail(const char *noun, const char *from, const char *to) __attribute__((noreturn));

/* Before `to`, which has a row, is set. Where KYMO_CHECKS_STATES is false this does nothing. */
static inline void kymo_state_check(const char *noun, const struct kymo_state_row *rows, size_t n, unsigned int from,
				    unsigned int to)
{
	if (KYMO_CHECKS_STATES && !kymo_state_may_follow(rows, n, from, to))
		kymo_state_fail(noun, rows[from].name, rows[to].name);
}

#endif
