/*
 * The table of readable memory, as a process has it (docs/design/fast-reads.md): whether there is one, and when it is
 * closed. install/readable_pages.c opens it, and adds pages.
 */
#include "probe/threads/readable.h"

#include <stddef.h>
#include <sys/syscall.h>

#include "base/io.h"
#include "probe/memory/remote_memory.h"
#include "probe/probes.h"
#include "probe/site/warning.h"
#include "probe/threads/strikes.h"
#include "proc/call.h"
#include "proc/process.h"
#include "wire/readable.h"

#define REGISTER 256                   /* MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ */
#define LEAVE_NS UINT64_C(15000000000) /* longer than a call waits for a reader: then none is left */

struct kymo_wire_readable *probes_readable_table(const struct kymo_probes *probes)
{
	return (void *)((char *)probes->shared.data.head + probes->shared.readable_at);
}

void probes_forgo_readable(struct kymo_probes *probes)
{
	if (!probes->wanted.options.fast_reads || probes->shared.is_sequenced)
		return;
	probes->wanted.options.fast_reads = false;
	probes_drop_strikes(probes);
	probes_tell_readable(probes, "its threads have no restartable sequences");
}

void probes_prepare_readable(struct kymo_probes *probes)
{
	if (probes->wanted.options.fast_reads && kymo_allocate(probes->shared.data.fd, probes->shared.readable_at,
							       offsetof(struct kymo_wire_readable, pages))) {
		probes->wanted.options.fast_reads = false;
		probes_drop_strikes(probes);
	}
}

uint64_t probes_readable_address(const struct kymo_probes *probes)
{
	return probes->wanted.options.fast_reads && probes->readable.is_wanted && !probes->readable.has_left &&
			       probes->reading.is_used
		       ? probes->shared.data_address + probes->shared.readable_at
		       : 0;
}

void probes_close_readable(struct kymo_probes *probes, const char *why)
{
	struct kymo_wire_readable *table;

	if (!probes->wanted.options.fast_reads || !probes->has_shared || probes->readable.is_refused)
		return;
	table = probes_readable_table(probes);
	__atomic_store_n(&table->is_closed_for_good, 1, __ATOMIC_RELAXED);
	__atomic_fetch_and(&table->state, ~KYMO_WIRE_READABLE_OPEN, __ATOMIC_SEQ_CST);
	probes->readable.is_refused = true;
	probes->readable.leave_ns = kymo_now_ns() + LEAVE_NS;
	if (why)
		probes_tell_readable(probes, why);
}

void probes_tell_readable(struct kymo_probes *probes, const char *why)
{
	if (probes->wanted.options.wants_fast_reads && !probes->readable.is_told)
		probes_warn(probes,
			    "memory of process %d is read by system calls, a microsecond each, and not by plain loads: "
			    "%s",
			    probes->pid, why);
	probes->readable.is_told = true;
}

void probes_shut_readable(struct kymo_probes *probes)
{
	if (probes->wanted.options.fast_reads && probes->has_shared)
		kymo_wire_close_readable(probes_readable_table(probes));
}

void probes_register_readable(struct kymo_probes *probes)
{
	const uint64_t args[6] = { REGISTER };
	struct kymo_error *error;
	int64_t result = -1;

	if (!probes->wanted.options.fast_reads || !probes->readable.is_wanted || probes->readable.is_registered)
		return;
	error = kymo_remote_begin(probes->process);
	if (!error) {
		error = kymo_remote_syscall(probes->process, SYS_membarrier, args, &result);
		error = kymo_error_first(error, kymo_remote_end(probes->process));
	}
	kymo_error_destroy(error);
	if (error || result)
		probes_close_readable(probes, "the kernel does not fence its restartable sequences (membarrier)");
	else
		probes->readable.is_registered = true;
}
