#include "gdb/pad_set.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/print.h"
#include "base/error.h"
#include "gdb/agent_form.h"
#include "gdb/pad_notes.h"
#include "gdb/prints.h"
#include "hub/hub.h"
#include "probe/code/events.h"
#include "probe/install/install.h"
#include "probe/install/remove.h"
#include "probe/install/traps.h"
#include "probe/memory/prints.h"
#include "probe/memory/state.h"
#include "probe/probe.h"
#include "probe/spec/spec.h"
#include "proc/process.h"
#include "proc/stop.h"
#include "procfs/info.h"
#include "procfs/threads.h"
#include "wire/prints.h"

enum { PADS_MAX = 400, RING_SIZE = 16384 };

static void free_wanted(const struct gdb_wanted *wanted)
{
	free(wanted->pad.code);
	free(wanted->print);
}

struct printing {
	struct kymo_gdb *gdb;
	const struct gdb_prints *prints;
};

static void end_prints(void *data)
{
	const struct printing *it = data;

	gdb_prints_end(it->gdb, it->prints);
}

void gdb_pad_set_destroy(struct kymo_gdb *gdb, struct gdb_pad_set *set)
{
	if (!set)
		return;
	if (set->is_printing)
		kymo_hub_run(gdb->hub, end_prints, &(struct printing){ gdb, set->prints });
	gdb_prints_destroy(set->prints);
	kymo_probes_destroy(set->probes);
	kymo_events_destroy(set->events);
	kymo_process_destroy(set->process);
	for (size_t i = 0; i < set->wanted.n; i++)
		free_wanted(&set->wanted.items[i]);
	kymo_vec_deinit(&set->wanted);
	kymo_vec_deinit(&set->kept);
	free(set->pad_prints);
	free(set->items);
	free(set->specs);
	free(set);
}

/* ---- what is wanted -------------------------------------------------------------------------- */

/* Its format is in the copy of the code. */
static struct gdb_print *copy_print(const struct gdb_condition *command, const uint8_t *code)
{
	struct gdb_print *print = malloc(sizeof(*print));

	if (!print)
		return NULL;
	*print = *command->print;
	print->format = (const char *)code + (print->format - (const char *)command->code);
	return print;
}

bool gdb_pad_set_want(struct gdb_pad_set *set, const struct gdb_pad_wish *wish, uint64_t address)
{
	struct gdb_wanted wanted = { .pad = gdb_pad_of(wish, address),
				     .has_condition = wish->condition,
				     .reads = gdb_pad_reads(wish) };

	if (wish->condition)
		wanted.form = *wish->condition->form;
	if (wanted.pad.code && wish->command)
		wanted.print = copy_print(wish->command, wanted.pad.code + wanted.pad.size);
	if (set->wanted.n < PADS_MAX && wanted.pad.code && !wish->command == !wanted.print &&
	    kymo_vec_push(&set->wanted, wanted))
		return true;
	free_wanted(&wanted);
	return false;
}

/* ---- putting in ------------------------------------------------------------------------------ */

/* The kernel resets the action of such a signal before its tracer sees it. */
static bool loses_faults(pid_t pid)
{
	const uint64_t faults = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1);
	struct kymo_thread_infos threads = { .n = 0 };
	struct kymo_error *error = kymo_thread_infos_read(pid, &threads);
	bool loses = error != NULL;

	for (size_t i = 0; i < threads.n && !loses; i++) {
		struct kymo_process_info info;

		loses = kymo_process_peek_status(threads.items[i].tid, &info) && (info.ignored | info.blocked) & faults;
	}
	if (!error)
		kymo_thread_infos_deinit(&threads);
	kymo_error_destroy(error);
	return loses;
}

static void add_trap(struct gdb_pad_set *set, const struct gdb_wanted *wanted)
{
	struct kymo_pad_print *print = &set->pad_prints[set->traps.n];
	const uint32_t n_strings = wanted->print ? (uint32_t)__builtin_popcount(wanted->print->strings) : 0;
	const uint32_t size = wanted->print ? kymo_wire_print_size((uint32_t)wanted->print->n, n_strings) : 0;

	if (wanted->print)
		*print = (struct kymo_pad_print){ .number = (uint32_t)set->traps.n,
						  .args = wanted->print->args,
						  .n = wanted->print->n,
						  .strings = wanted->print->strings };
	if (size > set->traps.slot_size)
		set->traps.slot_size = size;
	set->items[set->traps.n++] =
		(struct kymo_probes_trap){ .address = wanted->pad.address,
					   .condition = wanted->has_condition ? &wanted->form : NULL,
					   .print = wanted->print ? print : NULL };
}

static bool make_traps(struct gdb_pad_set *set)
{
	const bool has_no_loads = loses_faults(set->pid);

	set->specs = calloc(set->wanted.n, sizeof(*set->specs));
	set->items = calloc(set->wanted.n, sizeof(*set->items));
	set->pad_prints = calloc(set->wanted.n, sizeof(*set->pad_prints));
	if (!set->specs || !set->items || !set->pad_prints)
		return false;
	set->traps = (struct kymo_probes_traps){ .items = set->items };
	for (size_t i = 0; i < set->wanted.n; i++)
		if (has_no_loads && set->wanted.items[i].reads)
			kymo_vec_push(&set->kept, set->wanted.items[i].pad.address);
		else
			add_trap(set, &set->wanted.items[i]);
	set->traps.kept = set->kept.items;
	set->traps.n_kept = set->kept.n;
	return true;
}

/* Numbers are those of the items: one that does not print has a meaning that is never asked for. */
static bool make_prints(struct gdb_pad_set *set)
{
	const struct kymo_probes_prints memory = kymo_prints(set->probes);
	static const struct gdb_print nothing = { .format = "" };

	set->prints = memory.n_slots ? gdb_prints_make(memory.memory, memory.n_slots, memory.slot_size) : NULL;
	for (size_t i = 0, k = 0; set->prints && i < set->traps.n; i++, k++) {
		while (set->wanted.items[k].pad.address != set->items[i].address)
			k++;
		if (!gdb_prints_add(set->prints, set->items[i].address,
				    set->items[i].print ? set->wanted.items[k].print : &nothing))
			return false;
	}
	return set->prints;
}

static void say_nothing(const char *sentence, void *data)
{
}

struct kymo_error *gdb_pad_set_install(struct gdb_pad_set *set)
{
	const bool has_traps = make_traps(set), prints = set->traps.slot_size;
	const struct kymo_probes_options options = {
		.directory = "(breakpoints)",
		.buffer_size = prints ? kymo_prints_buffer() : RING_SIZE,
		.overwrite = prints,
		.is_tight = true,
		.is_one_of_many = true,
		.no_rseq = true,
		.traps = &set->traps,
		.warn = say_nothing,
	};
	struct kymo_probes_options own = options;
	uint64_t stopped_ns = 0;
	struct kymo_detach_result dead = { .note = NULL };
	struct kymo_error *error = has_traps ? kymo_process_open(set->pid, &set->process)
					     : kymo_error_errno(ENOMEM, "no memory for the pads of breakpoints");

	if (!error)
		error = kymo_remove_at_once(set->process, 0, &dead); /* what a killed stub has left at the sites */
	free(dead.note);
	set->leaves_dead = !error && dead.pads_left;
	if (!error)
		error = kymo_events_create(&set->events);
	own.events = set->events;
	if (!error)
		error = kymo_probes_create(set->process, set->specs, set->traps.n, &own, &set->probes);
	if (!error)
		error = kymo_probes_freeze(set->probes);
	if (!error)
		error = kymo_probes_resolve_traps(set->probes);
	if (!error)
		error = kymo_probes_install(set->probes, &stopped_ns);
	if (set->process)
		kymo_process_resume(set->process);
	if (!error && prints && kymo_probes_inode(set->probes) && !make_prints(set))
		error = kymo_error_errno(ENOMEM, "no memory for what breakpoints print");
	return error;
}
