#include "arch/trap.h"

#include <string.h>

#include "arch/plan.h"

#define RESUME_FLAG 0x10000ull
#define TRAP_FLAG 0x100ull

uint64_t kymo_trap_address(const struct user_regs_struct *registers)
{
	return registers->rip - 1;
}

void kymo_trap_return(struct user_regs_struct *registers)
{
	registers->rip--;
}

void kymo_trap_set(struct user_regs_struct *registers, uint64_t address)
{
	registers->rip = address + 1;
}

bool kymo_trap_is_same(const struct user_regs_struct *a, const struct user_regs_struct *b)
{
	return a->rip == b->rip && a->rsp == b->rsp && a->rax == b->rax && a->rbx == b->rbx && a->rcx == b->rcx &&
	       a->rdx == b->rdx && a->rsi == b->rsi && a->rdi == b->rdi && a->rbp == b->rbp && a->r8 == b->r8 &&
	       a->r9 == b->r9 && a->r10 == b->r10 && a->r11 == b->r11 && a->r12 == b->r12 && a->r13 == b->r13 &&
	       a->r14 == b->r14 && a->r15 == b->r15 && !((a->eflags ^ b->eflags) & ~(RESUME_FLAG | TRAP_FLAG));
}

size_t kymo_watch_register(unsigned int number)
{
	return offsetof(struct user, u_debugreg) + number * sizeof(unsigned long long);
}

bool kymo_watch_is_on(uint64_t control, unsigned int slot)
{
	return control >> (2 * slot) & 3;
}

uint64_t kymo_watch_off(uint64_t control, unsigned int slot)
{
	return control & ~(3ull << (2 * slot)) & ~(15ull << (16 + 4 * slot));
}

/* LEN: 0, 1, 3 for one, two, four bytes, 2 for eight. R/W: 0 execution, 1 writes, 3 reads and writes. */
uint64_t kymo_watch_on(uint64_t control, unsigned int slot, enum kymo_watch_kind kind, unsigned int size)
{
	uint64_t type = kind == KYMO_WATCH_ON_EXECUTION ? 0 : kind == KYMO_WATCH_ON_WRITE ? 1 : 3;
	uint64_t length = size == 8 ? 2 : size - 1;

	return kymo_watch_off(control, slot) | 1ull << (2 * slot) | (type | length << 2) << (16 + 4 * slot);
}

bool kymo_watch_can(enum kymo_watch_kind kind, uint64_t address, size_t size)
{
	if (kind == KYMO_WATCH_ON_EXECUTION)
		return size == 1;
	return (size == 1 || size == 2 || size == 4 || size == 8) && address % size == 0;
}

uint64_t kymo_jump_target(uint64_t from, const uint8_t bytes[KYMO_JUMP_SIZE])
{
	int32_t distance;

	if (bytes[0] != 0xe9)
		return 0;
	memcpy(&distance, bytes + 1, sizeof(distance));
	return from + KYMO_JUMP_SIZE + (uint64_t)(int64_t)distance;
}

uint64_t kymo_short_jump_target(uint64_t from, const uint8_t bytes[KYMO_SHORT_JUMP_SIZE])
{
	return bytes[0] == 0xeb ? from + KYMO_SHORT_JUMP_SIZE + (uint64_t)(int64_t)(int8_t)bytes[1] : 0;
}
