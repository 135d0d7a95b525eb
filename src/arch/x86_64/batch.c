#include "arch/batch.h"

#include <string.h>

#include "arch/remote.h"

/* r12: the row; r13: how many are left; rbx: the signal. The kernel changes rax, rcx and r11 alone. */
static const uint8_t code[] = {
	0x49, 0x8b, 0x04, 0x24,             /* 0: mov (%r12),%rax */
	0x49, 0x8b, 0x7c, 0x24, 0x08,       /* 4: mov 8(%r12),%rdi */
	0x49, 0x8b, 0x74, 0x24, 0x10,       /* 9: mov 16(%r12),%rsi */
	0x49, 0x8b, 0x54, 0x24, 0x18,       /* 14: mov 24(%r12),%rdx */
	0x4d, 0x8b, 0x54, 0x24, 0x20,       /* 19: mov 32(%r12),%r10 */
	0x4d, 0x8b, 0x44, 0x24, 0x28,       /* 24: mov 40(%r12),%r8 */
	0x4d, 0x8b, 0x4c, 0x24, 0x30,       /* 29: mov 48(%r12),%r9 */
	0x0f, 0x05,                         /* 34: syscall */
	0x49, 0x89, 0x44, 0x24, 0x38,       /* 36: mov %rax,56(%r12) */
	0x49, 0x83, 0xc4, 0x40,             /* 41: add $64,%r12 */
	0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff, /* 45: cmp $-4095,%rax */
	0x73, 0x05,                         /* 51: jae 58 */
	0x49, 0xff, 0xcd,                   /* 53: dec %r13 */
	0x75, 0xc6,                         /* 56: jnz 0 */
	0xb8, 0x27, 0x00, 0x00, 0x00,       /* 58: mov $SYS_getpid,%eax */
	0x0f, 0x05,                         /* 63: syscall */
	0x89, 0xc7,                         /* 65: mov %eax,%edi */
	0x89, 0xc6,                         /* 67: mov %eax,%esi */
	0x89, 0xda,                         /* 69: mov %ebx,%edx */
	0xb8, 0xea, 0x00, 0x00, 0x00,       /* 71: mov $SYS_tgkill,%eax */
	0x0f, 0x05,                         /* 76: syscall */
	0xc3,                               /* 78: ret */
};

_Static_assert(sizeof(code) <= KYMO_BATCH_CODE_MAX, "a caller that compares it has room");

static const uint8_t instructions[] = { 0,  4,  9,  14, 19, 24, 29, 34, 36, 41, 45,
					51, 53, 56, 58, 63, 65, 67, 69, 71, 76, 78 };

const uint8_t *kymo_batch_code(size_t *size_ret)
{
	*size_ret = sizeof(code);
	return code;
}

uint64_t kymo_batch_end(uint64_t at)
{
	return at + sizeof(code) - 1;
}

void kymo_batch_begin(const struct user_regs_struct *registers, uint64_t at, uint64_t sp, uint64_t table, size_t n,
		      int signal, struct user_regs_struct *ret)
{
	*ret = *registers;
	ret->orig_rax = (uint64_t)-1;
	ret->r12 = table;
	ret->r13 = n;
	ret->rbx = (uint64_t)signal;
	ret->rsp = sp;
	ret->rip = at;
	ret->eflags &= ~(unsigned long long)(1 << 8 | 1 << 10); /* no single step, no direction */
}

bool kymo_batch_is_code(const uint8_t *bytes)
{
	for (size_t i = 0; i < sizeof(instructions); i++) {
		const size_t left = sizeof(code) - instructions[i];

		if (!memcmp(bytes, code + instructions[i], left < KYMO_REMOTE_CODE ? left : KYMO_REMOTE_CODE))
			return true;
	}
	return false;
}
