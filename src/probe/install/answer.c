/* Answers to threads that have loaded or closed a library, and wait until the recorder has looked (watch.c). */
#include "probe/install/answer.h"

#include "probe/code/modules.h"
#include "probe/install/install.h"
#include "probe/memory/state.h"
#include "probe/probes.h"
#include "probe/install/mapped.h"
#include "probe/site/refusals.h"
#include "probe/site/sites.h"
#include "probe/spec/spec.h"
#include "probe/threads/watch.h"

#define REQUESTS_OF_ONE 2 /* before and after a library is loaded, and as many when it goes */

/* One may be answered before it comes. */
static bool is_unanswered(const struct kymo_probes *probes, uint32_t requests)
{
	return (int32_t)(requests - probes->watch.n_answers) > 0;
}

bool kymo_probes_are_asked(const struct kymo_probes *probes)
{
	const struct kymo_wire_watch *watch;

	if (!kymo_probes_are_watching(probes) || probes->is_starting)
		return false;
	watch = &probes->shared.data.head->watch;
	return is_unanswered(probes, __atomic_load_n(&watch->requests, __ATOMIC_ACQUIRE)) ||
	       __atomic_load_n(&watch->given_up, __ATOMIC_RELAXED);
}

/* Of the kernel's half of a recording that is made in two nothing is known here. */
static bool are_files_wanted(const struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->wanted.n_specs; i++)
		if (!probes->wanted.specs[i].address)
			return true;
	return probes->wanted.options.kernel;
}

/* A library that has come and gone may have been a wanted one: specs name no file for markers and system calls, and
 * named files may come back. */
static bool are_files_awaited(const struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->wanted.n_specs; i++)
		if (!probes->wanted.specs[i].address && (!probes->wanted.specs[i].file || !probes->per_spec.met[i]))
			return true;
	for (size_t i = 0; i < probes->modules.n; i++)
		if (probes->modules.items[i].is_gone && !probes->modules.items[i].is_replaced &&
		    !probes->modules.items[i].jit)
			return true;
	return probes->wanted.options.kernel;
}

/*
 * Threads have not waited for answers to some of the `requests`, and a library may have come and gone meanwhile, if
 * only with its process. What stood there when its process ended is not known: it may have been closed and opened
 * again.
 */
static bool may_have_missed(struct kymo_probes *probes, uint32_t requests)
{
	int32_t n = (int32_t)(requests - probes->watch.n_on_time);
	bool has_ended;

	if (n <= 0 || !probes_have_let_pass(probes))
		return false;
	has_ended = !kymo_probes_are_mapped(probes);
	return n > REQUESTS_OF_ONE && has_ended ? are_files_wanted(probes)
						: (n > REQUESTS_OF_ONE || has_ended) && are_files_awaited(probes);
}

/* From now on they wait again. A thread that has not, since `requests` were counted, is dealt with next. */
static void go_on(struct kymo_probes *probes, uint32_t requests)
{
	struct kymo_wire_watch *watch = &probes->shared.data.head->watch;
	bool has_given_up;

	if (is_unanswered(probes, requests))
		probes->watch.n_answers = requests;
	__atomic_store_n(&watch->answers, probes->watch.n_answers, __ATOMIC_RELEASE);
	has_given_up = __atomic_exchange_n(&watch->given_up, 0, __ATOMIC_ACQ_REL);
	probes->watch.were_let_pass = has_given_up && __atomic_load_n(&watch->requests, __ATOMIC_ACQUIRE) != requests;
	if (!probes->watch.were_let_pass && (int32_t)(requests - probes->watch.n_on_time) > 0)
		probes->watch.n_on_time = requests;
}

struct kymo_error *kymo_probes_answer(struct kymo_probes *probes, bool has_new, bool *late_ret,
				      uint64_t *stopped_ns_ret)
{
	const struct kymo_wire_watch *watch = &probes->shared.data.head->watch;
	uint32_t requests = __atomic_load_n(&watch->requests, __ATOMIC_ACQUIRE), seen;
	struct kymo_error *error = NULL;

	probes_forget_errors(probes); /* of another library */
	if (kymo_probes_are_mapped(
		    probes)) /* of a process that is gone there is nothing to be seen, or the next program */
		error = kymo_probes_resolve(probes);
	seen = __atomic_load_n(&watch->requests,
			       __ATOMIC_ACQUIRE); /* what has gone since, too, is not among what was looked at */
	if (!error && kymo_probes_are_mapped(probes) && kymo_probes_pending(probes)) {
		has_new = true;
		error = kymo_probes_install(probes, stopped_ns_ret);
	}
	*late_ret = (has_new && probes_have_let_pass(probes)) || may_have_missed(probes, seen);
	if (*late_ret)
		probes->watch.n_on_time = seen;
	go_on(probes, requests);
	return error;
}

bool kymo_probes_were_too_late(struct kymo_probes *probes)
{
	const struct kymo_wire_data *head = kymo_probes_are_watching(probes) ? probes->shared.data.head : NULL;

	return head && !head->has_left && is_unanswered(probes, head->watch.requests) &&
	       may_have_missed(probes, head->watch.requests);
}
