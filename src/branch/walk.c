#include "branch/walk.h"

#include "base/page.h"
#include "kymo/engine.h"

/* Code may end within the longest instruction, at the end of what is mapped. */
static bool decode(struct kymo_engine *engine, struct kymo_walk *walk)
{
	uint8_t bytes[KYMO_STEP_BYTES];
	size_t size = sizeof(bytes);
	const size_t part = kymo_page_part(walk->pc, size);

	if (kymo_engine_read(engine, walk->pc, bytes, size)) {
		if (part == size || kymo_engine_read(engine, walk->pc, bytes, part))
			return false;
		size = part;
	}
	return !kymo_step_of(bytes, size, &walk->step);
}

static void stand(struct kymo_engine *engine, const struct user_regs_struct *registers, struct kymo_walk *ret)
{
	ret->pc = kymo_step_pc(registers);
	ret->sp = kymo_step_sp(registers);
	ret->has_own_flag = kymo_flags_are_own(registers);
	ret->is_known = decode(engine, ret);
}

int kymo_walk_look(struct kymo_engine *engine, struct kymo_walk *ret)
{
	struct user_regs_struct registers;
	const int err = kymo_engine_get_registers(engine, &registers);

	ret->is_known = false;
	if (!err)
		stand(engine, &registers, ret);
	return err;
}

void kymo_walk_clean(struct kymo_engine *engine, const struct kymo_walk *before, const struct kymo_walk *now)
{
	uint16_t flags;

	if (!before->step.flags.pushed || before->has_own_flag || now->sp != before->sp - before->step.flags.pushed)
		return;
	if (!kymo_engine_read(engine, now->sp, &flags, sizeof(flags)) && kymo_flags_clean(&flags))
		kymo_engine_write(engine, now->sp, &flags, sizeof(flags));
}

bool kymo_walk_pop(struct kymo_engine *engine, struct kymo_walk *walk)
{
	struct user_regs_struct registers;
	uint64_t value = 0;

	if (!walk->is_known || !walk->step.flags.popped || kymo_engine_get_registers(engine, &registers) ||
	    kymo_engine_read(engine, walk->sp, &value, walk->step.flags.popped) ||
	    !kymo_flags_pop(&walk->step.flags, value, &registers) || kymo_engine_set_registers(engine, &registers))
		return false;
	stand(engine, &registers, walk);
	return true;
}
