#include "gdb/pad_notes.h"

#include <stdlib.h>
#include <string.h>

#include "gdb/breakpoints.h"
#include "gdb/conditions.h"
#include "hub/trap/pads.h"
#include "probe/install/traps.h"

static bool is_wanted(const struct kymo_form *form, enum kymo_gdb_pads pads)
{
	return kymo_probes_can_trap(form) &&
	       (pads == KYMO_GDB_PADS_ALL ||
		(pads == KYMO_GDB_PADS_WITHOUT_LOADS && !kymo_form_has(form, KYMO_FORM_LOAD, NULL)));
}

const struct gdb_condition *gdb_pad_condition(const struct gdb_process *process, const struct gdb_break *what,
					      enum kymo_gdb_pads pads)
{
	const struct gdb_condition *found = NULL;

	for (size_t i = 0; i < process->conditions.n; i++) {
		const struct gdb_condition *condition = &process->conditions.items[i];

		if (condition->is_command || !gdb_condition_is_at(condition, what->type, what->address))
			continue;
		if (found)
			return NULL;
		found = condition;
	}
	return found && what->type == GDB_BREAK_SOFTWARE && found->form && is_wanted(found->form, pads) ? found : NULL;
}

const struct gdb_pad *gdb_find_pad(const struct gdb_process *process, uint64_t address)
{
	for (size_t i = 0; i < process->pads.items.n; i++)
		if (process->pads.items.items[i].address == address)
			return &process->pads.items.items[i];
	return NULL;
}

bool gdb_pad_has(const struct gdb_pad *pad, const struct gdb_condition *condition)
{
	return pad && condition && pad->size == condition->size && !memcmp(pad->code, condition->code, pad->size);
}

void gdb_pads_choose(struct gdb_thread *thread, const struct gdb_break *what)
{
	const struct gdb_pad *pad = gdb_find_pad(thread->process, what->address);

	if (pad && pad->is_in && what->type == GDB_BREAK_SOFTWARE)
		hub_pads_use(thread->engine, what->address,
			     gdb_pad_has(pad, gdb_pad_condition(thread->process, what, thread->gdb->pads)));
}

void gdb_forget_pads(struct gdb_process *process)
{
	for (size_t i = 0; i < process->pads.items.n; i++)
		free(process->pads.items.items[i].code);
	kymo_vec_deinit(&process->pads.items);
}

void gdb_end_pads(struct gdb_process *process)
{
	gdb_forget_pads(process);
	process->pads.is_refused = false;
	process->pads.epoch++;
}
