/* Code that finds out what runs a pad: its thread, process and CPU. */
#include "arch/x86_64/context.h"

#include <cpuid.h>
#include <stdbool.h>
#include <sys/auxv.h>

#include "arch/pad.h"
#include "arch/x86_64/code.h"

void x86_load_live(struct code *c, const struct kymo_pad_env *env, unsigned int reg, unsigned int at)
{
	uint8_t opcode[] = { (uint8_t)(0x48 | (reg >> 3) << 2), 0x8b, (uint8_t)(0x05 | (reg & 7) << 3) };

	rip_to(c, (const char *)opcode, sizeof(opcode), env->live + at, 0);
}

void x86_load_tid(struct code *c, const struct kymo_pad_env *env, unsigned int reg)
{
	x86_load_live(c, env, reg, KYMO_PAD_LIVE_TID_OFFSET);
	EMIT(c, 0x64, 0x8b); /* mov %fs:(%reg),%reg */
	byte(c, reg << 3 | reg);
}

void x86_load_pid(struct code *c, const struct kymo_pad_env *env)
{
	rip_to(c, "\x8b\x05", 2, env->live + KYMO_PAD_LIVE_PID, 0); /* mov pid(%rip),%eax */
}

void x86_load_inner_pid(struct code *c, const struct kymo_pad_env *env)
{
	rip_to(c, "\x8b\x05", 2, env->live + KYMO_PAD_LIVE_INNER_PID, 0); /* mov pid(%rip),%eax */
}

/* Asked once: in a virtual machine each cpuid is tens of microseconds in the hypervisor. */
static bool has_rdpid(void)
{
	enum { UNKNOWN, NO, YES };
	static int known;
	int has = __atomic_load_n(&known, __ATOMIC_RELAXED);
	unsigned int a, b, c, d;

	if (has == UNKNOWN) {
		has = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & 1u << 22) ? YES : NO;
		__atomic_store_n(&known, has, __ATOMIC_RELAXED);
	}
	return has == YES;
}

#define MAY_READ_FS_BASE (1u << 1) /* HWCAP2_FSGSBASE: Linux 5.9, and the CPU */

/*
 * Where programs may not read the FS base, a control block of glibc's has its own address at 0 and at 16. That is sure
 * to be there in processes whose threads have restartable sequences of glibc's; others have no value.
 */
void x86_load_thread(struct code *c, const struct kymo_pad_env *env, struct label *fault)
{
	if (getauxval(AT_HWCAP2) & MAY_READ_FS_BASE) {
		EMIT(c, 0xf3, 0x48, 0x0f, 0xae, 0xc0); /* rdfsbase %rax */
		EMIT(c, 0x48, 0x85, 0xc0);             /* test %rax,%rax */
		JE(c, fault);
		return;
	}
	compare_byte(c, env->live, KYMO_PAD_RSEQ);
	JNE(c, fault);
	EMIT(c, 0x64, 0x48, 0x8b, 0x04, 0x25, 0x10, 0, 0, 0); /* mov %fs:16,%rax */
	EMIT(c, 0x64, 0x48, 0x3b, 0x04, 0x25, 0, 0, 0, 0);    /* cmp %fs:0,%rax */
	JNE(c, fault);
}

/* The CPU's number is in the low 12 bits of TSC_AUX and of the limit of segment 0x7b
 * (arch/x86/include/asm/segment.h, VDSO_CPUNODE_BITS). */
void x86_load_cpu(struct code *c)
{
	if (has_rdpid())
		EMIT(c, 0xf3, 0x0f, 0xc7, 0xf8); /* rdpid %rax */
	else
		EMIT(c, 0xb8, 0x7b, 0, 0, 0, 0x0f, 0x03, 0xc0); /* mov $0x7b,%eax; lsl %eax,%eax */
	EMIT(c, 0x25, 0xff, 0x0f, 0, 0);                        /* and $0xfff,%eax */
}
