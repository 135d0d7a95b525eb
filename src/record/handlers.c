#include "record/handlers.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "probe/install/exchange.h"
#include "probe/install/readable_open.h"
#include "probe/install/stack.h"
#include "probe/memory/data.h"
#include "probe/memory/state.h"
#include "proc/process.h"
#include "record/looks.h"
#include "record/recording.h"
#include "record/warnings.h"

#define HEED_NS (1000000000u / 20)

/* The processes that have the probes of `source`, but for its own; `targets_ret` has room for all. How many there are.
 */
static size_t children_of(const struct recording *recording, const struct record_source *source,
			  struct target **targets_ret)
{
	size_t n = 0;

	for (size_t i = 0; i < recording->run.targets.n; i++) {
		struct target *target = recording->run.targets.items[i];

		if (target->source && (target->source == source || target->source->lender == source) &&
		    target->process != source->process && !target->is_sharing && !target->is_clean)
			targets_ret[n++] = target;
	}
	return n;
}

/* Probes of which a child has lost some are known anew by its next look. */
static struct kymo_error *look_at_source(struct recording *recording, const struct record_source *source)
{
	const size_t most = recording->run.targets.n + 1;
	kymo_cleanup_free struct target **targets = calloc(most, sizeof(*targets));
	kymo_cleanup_free struct kymo_process **children = calloc(most, sizeof(*children));
	kymo_cleanup_free struct kymo_adopted **adopted = calloc(most, sizeof(*adopted));
	kymo_cleanup_free unsigned int *faults = calloc(most, sizeof(*faults));
	struct kymo_error *error;
	size_t n;

	if (!targets || !children || !adopted || !faults)
		return &kymo_error_no_memory;
	n = children_of(recording, source, targets);
	for (size_t i = 0; i < n; i++) {
		children[i] = targets[i]->process;
		adopted[i] = targets[i]->source->adopted;
		faults[i] = adopted[i] ? kymo_adopted_faults(adopted[i]) : 0;
	}
	kymo_probes_look_at_stack(source->probes);
	kymo_probes_open_readable(source->probes, &recording->result.stopped_ns);
	error = kymo_probes_heed_handlers(source->probes, children, adopted, n, &recording->result.stopped_ns);
	for (size_t i = 0; i < n; i++)
		if (adopted[i] && kymo_adopted_faults(adopted[i]) != faults[i])
			recording_end_look(recording, targets[i]);
	return error;
}

static bool are_handlers_set(const struct recording *recording, const struct record_source *source)
{
	bool are = kymo_probes_are_handlers_set(source->probes, NULL);

	for (size_t i = 0; i < recording->run.sources.n && !are; i++)
		are = recording->run.sources.items[i]->lender == source &&
		      kymo_probes_are_handlers_set(source->probes, recording->run.sources.items[i]->adopted);
	return are;
}

void recording_look_at_faults(struct recording *recording)
{
	uint64_t now = kymo_now_ns();
	bool is_time = now >= recording->run.next_heed_ns;

	if (is_time)
		recording->run.next_heed_ns = now + HEED_NS;
	for (size_t i = 0; i < recording->run.sources.n; i++) {
		struct record_source *source = recording->run.sources.items[i];
		struct kymo_error *error;

		if (source->lender || (!is_time && !are_handlers_set(recording, source)))
			continue;
		error = look_at_source(recording, source);

		if (error && kymo_probes_are_mapped(source->probes))
			recording_warn(recording,
				       "process %d has come to handle faults, and probes that displace what may fault "
				       "cannot be exchanged: %s",
				       kymo_process_pid(source->process), error->message);
		kymo_error_destroy(error);
	}
}
