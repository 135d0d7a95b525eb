/*
 * Whether pads may read memory by a system call (docs/internals/reading.md): the process's own id in its live pages
 * says so. It is there where no thread has a filter of system calls that might punish the call. A guard takes it away
 * before the process sets one up for itself.
 */
#include "probe/threads/reading.h"

#include "base/error.h"
#include "probe/code/events.h"
#include "probe/code/words.h"
#include "probe/probes.h"
#include "probe/site/warning.h"
#include "probe/spec/spec.h"
#include "probe/threads/readable.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "procfs/info.h"
#include "procfs/threads.h"

uint32_t probes_reads_stack(const struct kymo_spec *spec)
{
	struct kymo_probe_event event = { .spec = spec };

	probe_event_arguments(spec, &event);
	return kymo_pad_reads_stack(
		&(struct kymo_pad_event){ .args = event.args, .n_args = event.n_args, .filter = spec->filter });
}

static bool does_any(const struct kymo_probes *probes, bool (*does)(const struct kymo_pad_event *event))
{
	for (size_t i = 0; i < probes->wanted.n_specs && !probes->wanted.options.traps; i++) {
		const struct kymo_spec *spec = &probes->wanted.specs[i];
		struct kymo_probe_event event = { .spec = spec };

		probe_event_arguments(spec, &event);
		if (does(&(struct kymo_pad_event){
			    .args = event.args, .n_args = event.n_args, .filter = spec->filter }))
			return true;
	}
	return false;
}

bool probes_read_memory(const struct kymo_probes *probes)
{
	return does_any(probes, kymo_pad_reads_memory);
}

bool probes_read_elsewhere(const struct kymo_probes *probes)
{
	return does_any(probes, kymo_pad_reads_elsewhere);
}

/* Or may have one. */
static bool has_filter(pid_t pid)
{
	struct kymo_thread_infos threads = { .n = 0 };
	struct kymo_error *error = kymo_thread_infos_read(pid, &threads);
	struct kymo_process_info info;
	bool has = error != NULL;

	for (size_t i = 0; i < threads.n && !has; i++)
		has = kymo_process_peek_status(threads.items[i].tid, &info) && info.seccomp;
	if (!error)
		kymo_thread_infos_deinit(&threads);
	kymo_error_destroy(error);
	return has;
}

uint64_t probes_reader(const struct kymo_probes *probes, struct kymo_process *process)
{
	const pid_t pid = kymo_process_pid(process);

	if (probes->reading.is_told || !probes_read_memory(probes) || has_filter(pid))
		return 0;
	return (uint64_t)kymo_inner_tid(pid);
}

static bool is_taken_away(const struct kymo_probes *probes)
{
	uint64_t reader;

	return probes->reading.is_used && probes->shared.n_regions &&
	       !kymo_process_read(probes->process, probes->shared.live[0] + KYMO_PAD_LIVE_READER, &reader,
				  sizeof(reader)) &&
	       !reader;
}

static void take_away(struct kymo_probes *probes)
{
	const uint64_t none = 0;

	probes_close_readable(probes, NULL);
	for (uint32_t i = 0; i < probes->shared.n_regions; i++)
		kymo_process_write(probes->process, probes->shared.live[i] + KYMO_PAD_LIVE_READER, &none, sizeof(none));
}

/* Permanently: also of children, which have what limits it. */
static void stop_reading(struct kymo_probes *probes)
{
	probes->reading.is_used = false;
	probes->reading.is_told = true;
	take_away(probes);
	probes_warn(probes,
		    "process %d limits its own system calls (seccomp, no_new_privs): its memory is not read any more, "
		    "and values that need that are faults",
		    kymo_process_pid(probes->process));
}

void probes_note_reader(struct kymo_probes *probes)
{
	const bool could_read = probes->reading.is_used;

	if (is_taken_away(probes))
		stop_reading(probes);
	probes->reading.is_used = probes_reader(probes, probes->process) != 0;
	if (probes->reading.is_used || could_read || probes->reading.is_told || !probes_read_memory(probes))
		return;
	probes->reading.is_told = true;
	probes_warn(
		probes,
		"a thread of process %d has a seccomp filter, which might kill it for reading memory: values that need "
		"that are faults",
		kymo_process_pid(probes->process));
}

/* Where no guard has seen it, it is seen late. */
void probes_look_at_reader(struct kymo_probes *probes)
{
	struct kymo_process_info info;

	if (is_taken_away(probes) ||
	    (probes->reading.is_used && kymo_process_peek_status(kymo_process_pid(probes->process), &info) &&
	     info.seccomp))
		stop_reading(probes);
}
