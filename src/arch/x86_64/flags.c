/* Reference: Intel SDM volume 2, PUSHF and POPF; arch/x86/kernel/step.c of Linux for what a step makes of them. */
#include "arch/flags.h"

#include "arch/remote.h"

#define TRAP_FLAG 0x100u
#define POPPED_FLAGS 0x244dd5u /* that popf changes in a program: not IF, IOPL, VM and the like */
#define OPERAND_16 0x66u
#define REX 0x40u
#define REX_MASK 0xf0u
#define PUSHF 0x9cu
#define POPF 0x9du

/* Prefixes have no effect on them but for the size of the operand. */
static bool is_size_prefix(uint8_t byte)
{
	switch (byte) {
	case OPERAND_16:
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x64:
	case 0x65:
	case 0x67:
	case 0xf2:
	case 0xf3:
		return true;
	default:
		return (byte & REX_MASK) == REX;
	}
}

struct kymo_flags_step kymo_flags_step_of(const uint8_t *bytes, size_t size)
{
	uint8_t operand = 8;
	size_t i = 0;

	for (; i < size && is_size_prefix(bytes[i]); i++)
		if (bytes[i] == OPERAND_16)
			operand = 2;
	if (i == size || (bytes[i] != PUSHF && bytes[i] != POPF))
		return (struct kymo_flags_step){ 0, 0, 0 };
	if (i && bytes[i - 1] >> 3 == (REX | 8) >> 3) /* REX.W */
		operand = 8;
	return (struct kymo_flags_step){
		.pushed = bytes[i] == PUSHF ? operand : 0,
		.popped = bytes[i] == POPF ? operand : 0,
		.length = (uint8_t)(i + 1),
	};
}

bool kymo_flags_are_own(const struct user_regs_struct *registers)
{
	return registers->eflags & TRAP_FLAG;
}

bool kymo_flags_pop(const struct kymo_flags_step *step, uint64_t value, struct user_regs_struct *registers)
{
	const uint64_t mask = step->popped == 2 ? POPPED_FLAGS & UINT16_MAX : POPPED_FLAGS;

	if (!step->popped || value & TRAP_FLAG || registers->eflags & TRAP_FLAG || kymo_remote_restarts(registers))
		return false;
	registers->eflags = (registers->eflags & ~mask) | (value & mask);
	registers->rsp += step->popped;
	registers->rip += step->length;
	return true;
}

bool kymo_flags_clean(uint16_t *flags)
{
	const bool was_set = *flags & TRAP_FLAG;

	*flags &= (uint16_t)~TRAP_FLAG;
	return was_set;
}
