#include "gdb/conditions.h"

#include <stdlib.h>

#include "gdb/agent_form.h"

enum { CONDITIONS_MAX = 4096 }; /* of a process */

static void free_condition(const struct gdb_condition *condition)
{
	free(condition->code);
	free(condition->form);
	free(condition->print);
}

/* Of the first `n`. */
static void drop_among(struct gdb_process *process, const struct gdb_break *what, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < process->conditions.n; i++) {
		struct gdb_condition *condition = &process->conditions.items[i];

		if (i < n && gdb_condition_is_at(condition, what->type, what->address))
			free_condition(condition);
		else
			process->conditions.items[kept++] = *condition;
	}
	process->conditions.n = kept;
}

void gdb_drop_conditions(struct gdb_process *process, const struct gdb_break *what)
{
	drop_among(process, what, process->conditions.n);
}

void gdb_forget_conditions(struct gdb_process *process)
{
	for (size_t i = 0; i < process->conditions.n; i++)
		free_condition(&process->conditions.items[i]);
	process->conditions.n = 0;
}

/* ---- from a packet --------------------------------------------------------------------------- */

/* Without memory for it there is none. */
static struct kymo_form *compile_condition(const struct gdb_condition *condition)
{
	struct kymo_form form, *copy;

	if (!gdb_agent_compile(condition->code, condition->size, condition->address, &form))
		return NULL;
	copy = malloc(sizeof(*copy));
	if (copy)
		*copy = form;
	return copy;
}

static struct gdb_print *compile_command(const struct gdb_condition *command)
{
	struct gdb_print *print = malloc(sizeof(*print));

	if (print && gdb_agent_compile_print(command->code, command->size, command->address, print))
		return print;
	free(print);
	return NULL;
}

static bool take_one(struct gdb_words *words, struct gdb_process *process, const struct gdb_break *what,
		     bool is_command)
{
	struct gdb_condition condition = { .type = what->type, .address = what->address, .is_command = is_command };
	uint64_t size;

	if (!gdb_take_char(words, 'X') || !gdb_take_number(words, &size) || !gdb_take_char(words, ',') || !size ||
	    size > gdb_words_left(words) / 2)
		return false;
	condition.size = (size_t)size;
	condition.code = malloc(condition.size);
	if (condition.code && gdb_take_hex(words, condition.code, condition.size)) {
		condition.form = is_command ? NULL : compile_condition(&condition);
		condition.print = is_command ? compile_command(&condition) : NULL;
		if (kymo_vec_push(&process->conditions, condition))
			return true;
	}
	free_condition(&condition);
	return false;
}

/* Whether commands should go on without a client, which is not offered: they go with it. */
static bool take_persistence(struct gdb_words *words)
{
	uint64_t ignored;

	return gdb_take_number(words, &ignored) && gdb_take_char(words, ',');
}

bool gdb_take_conditions(struct gdb_words *words, struct gdb_process *process, const struct gdb_break *what)
{
	const size_t before = process->conditions.n;
	bool are_commands = false;

	while (!gdb_words_are_over(words)) {
		bool is_good = true;

		gdb_take_char(words, ';');
		if (gdb_take_text(words, "cmds:")) {
			is_good = !are_commands && take_persistence(words);
			are_commands = true;
		}
		if (is_good && take_one(words, process, what, are_commands)) {
			if (are_commands)
				gdb_take_char(words, ',');
			continue;
		}
		while (process->conditions.n > before)
			free_condition(&process->conditions.items[--process->conditions.n]);
		return false;
	}
	drop_among(process, what, before);
	if (process->conditions.n > CONDITIONS_MAX)
		gdb_drop_conditions(process, what); /* it is evaluated by the client alone */
	return true;
}
