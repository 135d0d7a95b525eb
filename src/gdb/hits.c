#include "gdb/hits.h"

#include "arch/fetch.h"
#include "gdb/agent.h"
#include "gdb/agent_print.h"
#include "gdb/breakpoints.h"
#include "gdb/conditions.h"
#include "gdb/prints.h"
#include "gdb/registers.h"
#include "gdb/stop.h"
#include "hub/regset.h"

struct view {
	struct gdb_thread *thread;
	struct user_regs_struct registers;
};

static bool read_register(void *data, unsigned int number, uint64_t *ret)
{
	const struct view *view = data;

	return gdb_register_of(view->thread, &view->registers, number, ret);
}

static bool read_hit_memory(void *data, uint64_t address, void *ret, size_t size)
{
	const struct view *view = data;

	return !kymo_engine_read(view->thread->engine, address, ret, size);
}

static bool load_for_form(void *data, uint64_t address, unsigned int size, uint64_t *ret)
{
	*ret = 0;
	return read_hit_memory(data, address, ret, size);
}

/* A step for each operation of the form, also for those that are not executed. */
static bool take_steps(const struct kymo_form *form, unsigned int *left)
{
	unsigned int n = form->n;

	for (uint32_t i = 0; i < form->n; i++)
		if (form->ops[i].code == KYMO_FORM_LOAD)
			n += GDB_AGENT_READ_STEPS;
	if (*left < n)
		return false;
	*left -= n;
	return true;
}

static bool run_form(struct view *view, const struct kymo_form *form, uint64_t *ret)
{
	uint64_t registers[KYMO_FETCH_REGISTERS];
	const struct kymo_form_input input = { .registers = registers, .load = load_for_form, .data = view };

	for (unsigned int i = 0; i < KYMO_FETCH_REGISTERS; i++)
		if (!read_register(view, i, &registers[kymo_register_of_debugger(i)]))
			return false;
	return kymo_form_run(form, &input, ret);
}

static bool evaluate_condition(struct view *view, const struct gdb_condition *condition, unsigned int *left,
			       uint64_t *ret)
{
	const struct gdb_agent_target target = { .read_register = read_register,
						 .read_memory = read_hit_memory,
						 .data = view };

	if (condition->form)
		return take_steps(condition->form, left) && run_form(view, condition->form, ret);
	return gdb_agent_evaluate(condition->code, condition->size, &target, left, ret);
}

/* A condition that cannot be evaluated stops: gdb looks at it, too, and says what is wrong. */
bool gdb_condition_holds(struct gdb_thread *thread, int type, uint64_t address)
{
	const struct gdb_process *process = thread->process;
	struct view view = { .thread = thread };
	unsigned int left = GDB_AGENT_STEPS; /* for all conditions of a hit */
	bool is_any = false, has_registers = false;

	for (size_t i = 0; i < process->conditions.n; i++) {
		const struct gdb_condition *condition = &process->conditions.items[i];
		uint64_t value;

		if (condition->is_command || !gdb_condition_is_at(condition, type, address))
			continue;
		is_any = true;
		if (!has_registers && kymo_engine_get_registers(thread->engine, &view.registers))
			return true;
		has_registers = true;
		if (!evaluate_condition(&view, condition, &left, &value) || value)
			return true;
	}
	return !is_any;
}

/* ---- commands -------------------------------------------------------------------------------- */

static bool print_for_hit(void *data, const char *format, size_t size, const uint64_t *args, size_t n)
{
	struct view *view = data;
	struct gdb_printed *printed = &view->thread->gdb->printed;
	const struct gdb_agent_target memory = { .read_memory = read_hit_memory, .data = view };

	if (printed->text.n < GDB_PRINTED_MAX)
		return gdb_agent_print(format, size, args, n, &memory, &printed->text);
	printed->n_lost++;
	return true;
}

static void run_command(struct view *view, const struct gdb_condition *command, unsigned int *left)
{
	const struct gdb_agent_target target = {
		.read_register = read_register, .read_memory = read_hit_memory, .data = view, .print = print_for_hit
	};
	struct gdb_printed *printed = &view->thread->gdb->printed;

	if (!gdb_agent_execute(command->code, command->size, &target, left) && printed->text.n < GDB_PRINTED_MAX)
		gdb_text_format(&printed->text, "(fault) of a command at 0x%lx\n", (unsigned long)command->address);
}

bool gdb_run_commands(struct gdb_thread *thread, int type, uint64_t address)
{
	const struct gdb_process *process = thread->process;
	struct view view = { .thread = thread };
	unsigned int left = GDB_AGENT_STEPS; /* for all commands of a hit */
	bool is_any = false;

	for (size_t i = 0; i < process->conditions.n; i++) {
		const struct gdb_condition *command = &process->conditions.items[i];

		if (!command->is_command || !gdb_condition_is_at(command, type, address))
			continue;
		if (!is_any && kymo_engine_get_registers(thread->engine, &view.registers))
			return false;
		if (!is_any)
			gdb_prints_collect(thread->gdb, GDB_PRINTED_MAX); /* what the thread has printed before */
		is_any = true;
		run_command(&view, command, &left);
	}
	if (is_any)
		gdb_wake(thread->gdb);
	return is_any;
}

/* ---- going on from one ----------------------------------------------------------------------- */

static bool has_commands(const struct gdb_process *process, int type, uint64_t address)
{
	for (size_t i = 0; i < process->conditions.n; i++)
		if (process->conditions.items[i].is_command &&
		    gdb_condition_is_at(&process->conditions.items[i], type, address))
			return true;
	return false;
}

void gdb_hit_again(struct gdb_thread *thread)
{
	const struct gdb_process *process = thread->process;
	uint64_t pc;

	if (!process->breaks.n || gdb_get_pc(thread, &pc) || !gdb_has_breakpoint(process, pc) ||
	    has_commands(process, GDB_BREAK_SOFTWARE, pc) || !gdb_condition_holds(thread, GDB_BREAK_SOFTWARE, pc))
		return;
	if (!kymo_engine_hit_again(thread->engine))
		gdb_btrace_forget_hit(thread);
}
