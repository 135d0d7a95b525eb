/* The pads of one process: a recording that has no events. Private to pads.c; the main thread's, if nothing else is
 * said. */
#ifndef KYMO_GDB_PAD_SET_H
#define KYMO_GDB_PAD_SET_H

#include "base/vec.h"
#include "gdb/pad_notes.h"
#include "gdb/state.h"
#include "probe/options.h"
#include "wire/form.h"

struct gdb_print;
struct kymo_pad_print;

/* What is wanted in a pad. */
struct gdb_wanted {
	struct gdb_pad pad;
	struct kymo_form form; /* of the condition, if there is one */
	bool has_condition;
	bool reads;              /* memory of the program */
	struct gdb_print *print; /* NULL: it traps */
};

struct gdb_pad_set {
	pid_t pid;
	unsigned int epoch;
	struct kymo_process *process;
	struct kymo_events *events;
	struct kymo_probes *probes;
	struct kymo_spec *specs;
	struct kymo_probes_trap *items;
	struct kymo_pad_print *pad_prints; /* of the items */
	struct kymo_probes_traps traps;
	struct gdb_prints *prints; /* NULL: none of them prints */
	KYMO_VEC(struct gdb_wanted) wanted;
	KYMO_VEC(uint64_t) kept;
	bool is_due, is_failed;
	bool is_printing; /* the hub's thread reads `prints` */
	bool is_leaving;  /* its jumps are out, and a thread may return into its pads */
	bool leaves_dead; /* threads were in pads of a killed stub, which are still there */
};

/* Add what is wanted at an address. False: there are too many, or memory is out. */
bool gdb_pad_set_want(struct gdb_pad_set *set, const struct gdb_pad_wish *wish, uint64_t address);

/* Put them in. The process of the set is frozen meanwhile. */
struct kymo_error *gdb_pad_set_install(struct gdb_pad_set *set);

/* Free it. What its pads have printed is read before, by the hub's thread. NULL is allowed. */
void gdb_pad_set_destroy(struct kymo_gdb *gdb, struct gdb_pad_set *set);

#endif
