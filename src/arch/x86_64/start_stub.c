#include "arch/start_stub.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/*
 * No flag changes, and nothing is read or written below the red zone's end that is not the stub's own. rax, rcx and r11
 * are what the displaced call leaves; the tracer's stop is at `told`, and the thread's id is what that call has
 * returned.
 */
static const uint8_t stub_code[KYMO_START_STUB] = {
	0xb8, 0xda, 0x00, 0x00, 0x00,                   /*  0 mov $set_tid_address, %eax */
	0x0f, 0x05,                                     /*  5 syscall */
	0x48, 0x8d, 0x64, 0x24, 0x80,                   /*  7 lea -128(%rsp), %rsp */
	0x50, 0x57, 0x56, 0x52,                         /* 12 push %rax, %rdi, %rsi, %rdx */
	0x89, 0xc7,                                     /* 16 mov %eax, %edi */
	0x89, 0xc6,                                     /* 18 mov %eax, %esi */
	0xba, 0x00, 0x00, 0x00, 0x00,                   /* 20 mov $signal, %edx */
	0xb8, 0xea, 0x00, 0x00, 0x00,                   /* 25 mov $tgkill, %eax */
	0x0f, 0x05,                                     /* 30 syscall */
	0x5a, 0x5e, 0x5f, 0x58,                         /* 32 pop %rdx, %rsi, %rdi, %rax */
	0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00, /* 36 lea 128(%rsp), %rsp */
	0xe9, 0x00, 0x00, 0x00, 0x00,                   /* 44 jmp site + KYMO_START_CALL */
	0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,       /* 49 */
	0xf0, 'k',  'y',  'm',  'o',  'r',  'u',  'n',  /* 56 */
};

enum {
	CALLED = 7, /* the displaced call has been made */
	BELOW = 12, /* the stack pointer is below the red zone */
	PUSHED = 16,
	SIGNAL = 21, /* where its number is */
	TOLD = 32,
	ABOVE = 44,
	DISTANCE = 45, /* of the jump back */
	END = 49,
};

#define RED_ZONE 128
#define WORD 8
#define RDI 7
#define RSP 4

/* ---- the call -------------------------------------------------------------------------------- */

bool kymo_start_is_site(const uint8_t code[KYMO_START_CODE])
{
	const uint8_t *load = code, *call = code + KYMO_START_BEFORE, *store = call + KYMO_START_CALL;
	const uint8_t base = load[2] & 7, high = load[0] & 1;

	/* lea distance(base), %rdi: REX.W, perhaps REX.B; mod is 2 */
	if ((load[0] & 0xfe) != 0x48 || load[1] != 0x8d || load[2] >> 3 != (2 << 3 | RDI) || base == RSP ||
	    memcmp(call, stub_code, KYMO_START_CALL) != 0)
		return false;
	/* mov %eax, distance(base) */
	if (high && *store++ != 0x41)
		return false;
	return store[0] == 0x89 && store[1] == (2 << 6 | base) && !memcmp(store + 2, load + 3, 4);
}

int64_t kymo_start_find_site(const uint8_t *text, size_t size)
{
	const uint8_t *at = text, *end = text + size;
	int64_t found = -ENOENT;

	while ((at = memmem(at, (size_t)(end - at), stub_code, KYMO_START_CALL))) {
		if (found >= 0)
			return -EEXIST;
		if (at - text < KYMO_START_BEFORE || end - at < KYMO_START_CODE - KYMO_START_BEFORE ||
		    !kymo_start_is_site(at - KYMO_START_BEFORE))
			return -ENOENT;
		found = at - text;
		at++;
	}
	return found;
}

/* ---- the stub -------------------------------------------------------------------------------- */

static bool has_distance(uint64_t from, uint64_t to, int32_t *ret)
{
	const int64_t distance = (int64_t)(to - from - KYMO_START_JUMP);

	*ret = (int32_t)distance;
	return distance == *ret;
}

static int make_jump(uint64_t from, uint64_t to, uint8_t ret[KYMO_START_JUMP])
{
	int32_t distance;

	if (!has_distance(from, to, &distance))
		return -ERANGE;
	ret[0] = 0xe9;
	memcpy(ret + 1, &distance, sizeof(distance));
	return 0;
}

int kymo_start_make_stub(uint64_t stub, uint64_t site, uint8_t signal, uint8_t stub_ret[KYMO_START_STUB],
			 uint8_t jump_ret[KYMO_START_JUMP])
{
	uint8_t jump[KYMO_START_JUMP], back[KYMO_START_JUMP];

	if (make_jump(site, stub, jump) || make_jump(stub + ABOVE, site + KYMO_START_CALL, back))
		return -ERANGE;
	memcpy(jump_ret, jump, sizeof(jump));
	memcpy(stub_ret, stub_code, sizeof(stub_code));
	memcpy(stub_ret + ABOVE, back, sizeof(back));
	stub_ret[SIGNAL] = signal;
	return 0;
}

bool kymo_start_is_stub(const uint8_t bytes[KYMO_START_STUB], uint64_t stub, uint64_t *site_ret,
			uint8_t jump_ret[KYMO_START_JUMP])
{
	uint8_t same[KYMO_START_STUB];
	uint64_t site;
	int32_t distance;

	memcpy(&distance, bytes + DISTANCE, sizeof(distance));
	site = stub + END + (uint64_t)(int64_t)distance - KYMO_START_CALL;
	if (kymo_start_make_stub(stub, site, bytes[SIGNAL], same, jump_ret) || memcmp(bytes, same, sizeof(same)) != 0)
		return false;
	*site_ret = site;
	return true;
}

uint64_t kymo_start_told_at(uint64_t stub)
{
	return stub + TOLD;
}

/* ---- out of it ------------------------------------------------------------------------------- */

/* How many words are on the stack before the instruction at `offset`; -1: none begins there. */
static int words_at(uint64_t offset)
{
	switch (offset) {
	case 0:
	case 5:
	case CALLED:
	case BELOW:
	case 36:
	case ABOVE:
		return 0;
	case 13:
	case 14:
	case 15:
		return (int)offset - BELOW;
	case PUSHED:
	case 18:
	case 20:
	case 25:
	case 30:
	case TOLD:
		return KYMO_START_WORDS;
	case 33:
	case 34:
	case 35:
		return 36 - (int)offset;
	default:
		return -1;
	}
}

int kymo_start_leave_stub(uint64_t stub, uint64_t site, const uint64_t stack[KYMO_START_WORDS],
			  struct user_regs_struct *registers, bool *has_called_ret)
{
	const uint64_t offset = registers->rip - stub;
	const int n = words_at(offset);
	unsigned long long *saved[KYMO_START_WORDS] = { &registers->rax, &registers->rdi, &registers->rsi,
							&registers->rdx };

	if (n < 0)
		return -EINVAL;
	for (int i = 0; i < n; i++)
		*saved[i] = stack[n - 1 - i];
	if (offset >= BELOW && offset < ABOVE)
		registers->rsp += RED_ZONE + WORD * (uint64_t)n;
	*has_called_ret = offset >= CALLED;
	registers->rip = *has_called_ret ? site + KYMO_START_CALL : site;
	registers->orig_rax = (unsigned long long)-1; /* it is in no call that might be made again */
	return 0;
}
