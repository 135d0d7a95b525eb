#include "gdb/hits.h"

#include "gdb/agent.h"
#include "gdb/conditions.h"
#include "gdb/registers.h"

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

/* One that cannot be evaluated stops: gdb looks at it, too, and says what is wrong. */
bool gdb_condition_holds(struct gdb_thread *thread, int type, uint64_t address)
{
	const struct gdb_process *process = thread->process;
	struct view view = { .thread = thread };
	const struct gdb_agent_target target = { read_register, read_hit_memory, &view };
	unsigned int left = GDB_AGENT_STEPS; /* for all conditions of a hit */
	bool is_any = false, has_registers = false;

	for (size_t i = 0; i < process->conditions.n; i++) {
		const struct gdb_condition *condition = &process->conditions.items[i];
		uint64_t value;

		if (!gdb_condition_is_at(condition, type, address))
			continue;
		is_any = true;
		if (!has_registers && kymo_engine_get_registers(thread->engine, &view.registers))
			return true;
		has_registers = true;
		if (!gdb_agent_evaluate(condition->code, condition->size, &target, &left, &value) || value)
			return true;
	}
	return !is_any;
}
