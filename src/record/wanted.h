/* What is asked for. Private to the room. */
#ifndef KYMO_RECORD_WANTED_H
#define KYMO_RECORD_WANTED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "record/record.h"

struct recording;
struct target;

/* What is asked for, and which way it goes. A recording that begins anew has the same. */
struct recording_wanted {
	const struct kymo_record_options *options;
	size_t at_pid; /* of the options' ids: the process is this one, and those before have refused */
	enum kymo_record_backend backend; /* of it all: INPROC, KERNEL or PTRACE */
	struct kymo_spec *specs; /* those for the process first, then those for the kernel; strings are the options' */
	size_t n_inproc, n_kernel;
	const struct kymo_spec
		*calls_spec; /* in `specs`, after all others: system calls that are none of the process's; or NULL */
	char **reasons;      /* per spec of the options: why it is the kernel's; or NULL */
	struct kymo_error *refusal; /* why the process is recorded through the kernel */
	bool has_told_refusal;
};

/* Whether more than one process is asked for, by ids or as children that exist. */
bool recording_has_several(const struct recording *recording);

/* NOT_FOUND: of several processes that are not followed this one has no file with a probe, so it is left alone. */
struct kymo_error *recording_check_any_met(const struct recording *recording, const struct target *target);

/* Whether markers are asked for, which only the way through the process can turn on. */
bool recording_has_markers(const struct kymo_record_options *options);

/* Whether system calls are asked for. */
bool recording_has_syscalls(const struct kymo_record_options *options);

/* Whether addresses are asked for, in memory of no file: of one process that runs, and nothing for the kernel. */
bool recording_has_addresses(const struct kymo_record_options *options);

/* Whether a spec asks for what only code in the process itself can do. */
bool recording_needs_process(const struct kymo_record_options *options);

/* Whether the oldest records go where there is no room for new ones; and how much of them a CPU has outside of the
 * process, in bytes. */
bool recording_is_flight_recorder(const struct kymo_record_options *options);
uint64_t recording_outside_buffer(const struct kymo_record_options *options);

/* With `keep`: what the packets of the process may take, and those of the kernel: half of it each, where there are
 * both.
 */
uint64_t recording_kept_size(const struct recording *recording);

/* What can't be asked for together: USAGE. */
struct kymo_error *recording_check_options(const struct recording *recording);

#endif
