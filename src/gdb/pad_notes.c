#include "gdb/pad_notes.h"

#include <stdlib.h>
#include <string.h>

#include "gdb/agent_form.h"
#include "gdb/breakpoints.h"
#include "gdb/conditions.h"
#include "hub/trap/pads.h"
#include "arch/print.h"

static bool reads(const struct kymo_form *form)
{
	return kymo_form_has(form, KYMO_FORM_LOAD, NULL);
}

static bool prints_memory(const struct gdb_print *print)
{
	bool does = print->strings;

	for (size_t i = 0; i < print->n; i++)
		does |= reads(&print->args[i]);
	return does;
}

static bool can_print(const struct gdb_condition *command, enum kymo_gdb_pads pads)
{
	const struct gdb_print *print = command->print;

	for (size_t i = 0; print && i < print->n; i++)
		if (!kymo_pad_can_print(&print->args[i]))
			return false;
	return print && (pads == KYMO_GDB_PADS_ALL || (pads == KYMO_GDB_PADS_WITHOUT_LOADS && !prints_memory(print)));
}

static bool can_decide(const struct gdb_condition *condition, enum kymo_gdb_pads pads)
{
	const struct kymo_form *form = condition->form;

	return form && kymo_pad_can_print(form) &&
	       (pads == KYMO_GDB_PADS_ALL || (pads == KYMO_GDB_PADS_WITHOUT_LOADS && !reads(form)));
}

/* Where several commands are, or one that no pad has, the stub runs them: a condition alone is in the pad. */
bool gdb_pad_wish(const struct gdb_process *process, const struct gdb_break *what, enum kymo_gdb_pads pads,
		  struct gdb_pad_wish *ret)
{
	size_t n_commands = 0;

	*ret = (struct gdb_pad_wish){ .condition = NULL };
	if (what->type != GDB_BREAK_SOFTWARE || pads == KYMO_GDB_PADS_NONE)
		return false;
	for (size_t i = 0; i < process->conditions.n; i++) {
		const struct gdb_condition *item = &process->conditions.items[i];

		if (!gdb_condition_is_at(item, what->type, what->address))
			continue;
		if (item->is_command) {
			n_commands++;
			ret->command = item;
		} else if (ret->condition || !can_decide(item, pads)) {
			return false;
		} else {
			ret->condition = item;
		}
	}
	if (ret->command && (n_commands > 1 || !can_print(ret->command, pads)))
		ret->command = NULL;
	return ret->condition || ret->command;
}

bool gdb_pad_reads(const struct gdb_pad_wish *wish)
{
	return (wish->condition && reads(wish->condition->form)) ||
	       (wish->command && prints_memory(wish->command->print));
}

struct gdb_pad gdb_pad_of(const struct gdb_pad_wish *wish, uint64_t address)
{
	const size_t size = wish->condition ? wish->condition->size : 0, more = wish->command ? wish->command->size : 0;
	struct gdb_pad pad = { .address = address, .code = malloc(size + more), .size = size, .n_code = size + more };

	if (pad.code && size)
		memcpy(pad.code, wish->condition->code, size);
	if (pad.code && more)
		memcpy(pad.code + size, wish->command->code, more);
	return pad;
}

const struct gdb_pad *gdb_find_pad(const struct gdb_process *process, uint64_t address)
{
	for (size_t i = 0; i < process->pads.items.n; i++)
		if (process->pads.items.items[i].address == address)
			return &process->pads.items.items[i];
	return NULL;
}

bool gdb_pad_has(const struct gdb_pad *pad, const struct gdb_pad_wish *wish)
{
	const size_t size = wish->condition ? wish->condition->size : 0, more = wish->command ? wish->command->size : 0;

	return pad && pad->size == size && pad->n_code == size + more &&
	       (!size || !memcmp(pad->code, wish->condition->code, size)) &&
	       (!more || !memcmp(pad->code + size, wish->command->code, more));
}

void gdb_pads_choose(struct gdb_thread *thread, const struct gdb_break *what)
{
	const struct gdb_pad *pad = gdb_find_pad(thread->process, what->address);
	struct gdb_pad_wish wish;

	if (pad && pad->is_in && what->type == GDB_BREAK_SOFTWARE)
		hub_pads_use(thread->engine, what->address,
			     gdb_pad_wish(thread->process, what, thread->gdb->pads, &wish) && gdb_pad_has(pad, &wish));
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
