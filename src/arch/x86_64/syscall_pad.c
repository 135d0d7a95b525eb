/*
 * The pad of a system call: a record before it and one after it, if the call is to be recorded.
 *
 *	save; takes memory away: a record, the call by the shared code, a record, restore, back
 *	may take memory away, and does not, or may sleep: as the following, after a look of the shared code
 *	not wanted: restore, the call, back
 *	a record: the number is in the event's id, the six arguments
 *	restore, the call
 *	save, a record with the result, restore, back
 *
 * Why this is right, beyond what holds for any pad (emit.c):
 *
 * 1. During the call the stack is as the program has it, without anything of the pad's. So calls that change stacks,
 * copy them or never return work as they do in place. The thread's position in the pad says whether the result is
 * recorded, so each exit has had its entry.
 * 2. The call has its own address in the pad, as any displaced `syscall` has: if the kernel restarts the call, it goes
 * two bytes back, to that copy, and the call is not recorded twice.
 * 3. If a call makes a thread or a process, the new one returns with 0. It goes on without a record, as its stack may
 * have no room for a pad. The test uses rcx (jrcxz), which `syscall` clobbers, as the program may read the flags.
 * 4. A call that takes memory away from readers is made by the shared code (guest_strike.c), with the frame in place.
 * None of those that it makes changes stacks or copies them, and none sleeps.
 * 5. No pad comes after this one in a chain: the record of the result would come before the others'. Others may come
 * before it.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "arch/pad.h"
#include "arch/syscall_pad.h"
#include "arch/x86_64/code.h"
#include "arch/x86_64/emit.h"
#include "arch/x86_64/event.h"
#include "arch/x86_64/frame.h"
#include "arch/x86_64/guest.h"
#include "wire/event.h"

#define X32 0x40000000u /* in a call's number */

enum { ENTRY, EXIT, N_EVENTS };

#define FROM(register_, type_) \
	{ \
		.kind = KYMO_FETCH_REGISTER, .type = (type_), .value = (register_) \
	}

static const struct kymo_fetch arguments[] = { FROM(RDI, KYMO_TYPE_X64), FROM(RSI, KYMO_TYPE_X64),
					       FROM(RDX, KYMO_TYPE_X64), FROM(R10, KYMO_TYPE_X64),
					       FROM(R8, KYMO_TYPE_X64),  FROM(R9, KYMO_TYPE_X64) };
static const struct kymo_fetch result[] = { FROM(RAX, KYMO_TYPE_S64) };

struct pad {
	struct code *c;
	const struct kymo_pad_env *env;
	struct x86_pad_site sites[N_EVENTS]; /* the same, for each event */
	struct kymo_pad_event events[N_EVENTS];
	struct x86_event_code parts[N_EVENTS];
	uint64_t descriptors[N_EVENTS][3];
};

bool kymo_pad_strikes(uint32_t number)
{
	switch (number & ~X32) {
	case SYS_mmap:
	case SYS_mprotect:
	case SYS_munmap:
	case SYS_brk:
	case SYS_mremap:
	case SYS_madvise:
	case SYS_shmat:
	case SYS_userfaultfd:
	case SYS_personality:
	case SYS_pkey_mprotect:
	case SYS_pkey_alloc:
	case SYS_io_uring_setup:
	case SYS_io_uring_enter:
	case SYS_ioctl:
	case SYS_process_madvise:
		return true;
	}
	return false;
}

/* To `plain` where the bit of number eax, which is in range, is 0. */
static void emit_look_up(struct code *c, size_t numbers, struct label *plain)
{
	rip_to(c, "\x4c\x8d\x15", 3, c->address + numbers, 0); /* lea numbers(%rip),%r10 */
	EMIT(c, 0x89, 0xc2, 0xc1, 0xea, 0x06);                 /* mov %eax,%edx; shr $6,%edx */
	EMIT(c, 0x49, 0x8b, 0x14, 0xd2);                       /* mov (%r10,%rdx,8),%rdx */
	EMIT(c, 0x48, 0x0f, 0xa3, 0xc2);                       /* bt %rax,%rdx */
	JAE(c, plain);                                         /* the bit is 0 */
}

/* To `plain` where the call's number is not in the table at `wanted`. The frame is in place; what is called with is in
 * it, but for rdi, rsi, r8 and r9. */
static void emit_filter(struct code *c, size_t wanted, struct label *plain)
{
	_Static_assert(KYMO_PAD_SYSCALLS == 512, "the comparison");
	rsp_slot(c, 0x8b, RAX, SLOT_RAX);
	EMIT(c, 0x48, 0x3d, 0xff, 0x01, 0, 0); /* cmp $511,%rax */
	JA(c, plain);
	emit_look_up(c, wanted, plain);
}

/* The same of calls that take memory away, if there is a table: by the number as the kernel takes it, which is eax
 * without the bit for x32. */
static void emit_strike_filter(struct code *c, const struct kymo_pad_env *env, size_t strikes, struct label *plain)
{
	rip_to(c, "\x48\x83\x3d", 3, env->live + KYMO_PAD_LIVE_READABLE, 1); /* cmpq $0,readable(%rip) */
	byte(c, 0);
	JE(c, plain);
	rsp_slot(c, 0x8b, RAX, SLOT_RAX);
	EMIT(c, 0x25, 0xff, 0xff, 0xff, 0xbf); /* and $~0x40000000,%eax */
	EMIT(c, 0x3d, 0xff, 0x01, 0, 0);       /* cmp $511,%eax */
	JA(c, plain);
	emit_look_up(c, strikes, plain);
}

static void emit_event(struct pad *pad, int i)
{
	const struct x86_stamp_use none = { .takes = false };

	if (pad->env->rseq_rings)
		x86_event_sequence(pad->c, pad->env, &pad->events[i], &pad->sites[i], &pad->parts[i],
				   pad->descriptors[i], none);
	else
		x86_event_plain(pad->c, pad->env, &pad->events[i], &pad->sites[i], &pad->parts[i]);
}

static void emit_event_cold(struct pad *pad, int i)
{
	if (!pad->env->rseq_rings) {
		x86_event_plain_states(pad->c, pad->env, &pad->parts[i]);
		return;
	}
	x86_event_cold(pad->c, pad->env, &pad->events[i], &pad->sites[i], &pad->parts[i]);
	x86_event_descriptor(pad->c, pad->descriptors[i], pad->parts[i].restart);
}

/* The frame is in place: to `birth` if the call makes a thread or a process. */
static void emit_is_birth(struct code *c, struct label *birth)
{
	struct label no = { .n = 0 };

	_Static_assert(SYS_clone == 56 && SYS_fork == 57 && SYS_vfork == 58 && SYS_clone3 == 435, "the comparisons");
	rsp_slot(c, 0x8b, RAX, SLOT_RAX);
	EMIT(c, 0x48, 0x3d, 0xb3, 0x01, 0, 0); /* cmp $SYS_clone3,%rax */
	JE(c, birth);
	EMIT(c, 0x48, 0x83, 0xf8, SYS_clone); /* cmp $SYS_clone,%rax */
	JB(c, &no);
	EMIT(c, 0x48, 0x83, 0xf8, SYS_vfork + 1); /* cmp $SYS_vfork + 1,%rax */
	JB(c, birth);
	bind(c, &no);
}

static void emit_call(struct code *c)
{
	x86_emit_restore(c);
	EMIT(c, 0x0f, 0x05);
}

static void emit_back(const struct pad *pad, const struct kymo_plan *plan)
{
	byte(pad->c, 0xe9);
	rel32_to(pad->c, pad->sites[ENTRY].address + plan->window);
}

/* The frame is in place, and gets the result. To `plain` where the shared code leaves the call to the pad. */
static void emit_strike(struct code *c, const struct kymo_pad_env *env, struct label *plain)
{
	struct kymo_guest_image guest;

	kymo_guest_image(&guest);
	EMIT(c, 0x49, 0x89, 0xe2);                  /* mov %rsp,%r10 */
	rip_to(c, "\x4c\x8d\x1d", 3, env->live, 0); /* lea live(%rip),%r11 */
	byte(c, 0xe8);
	rel32_to(c, env->guest + guest.strike);
	EMIT(c, 0x85, 0xd2); /* test %edx,%edx */
	JE(c, plain);
	rsp_slot(c, 0x89, RAX, SLOT_RAX);
}

/* Where the numbers of the calls are: that are recorded, and that take memory away; 0: the pad strikes nothing. */
struct tables {
	size_t wanted, strikes;
};

static void emit_recorded(struct pad *pad, const struct kymo_plan *plan, const struct tables *tables,
			  struct label *plain)
{
	struct label birth = { .n = 0 }, keeps = { .n = 0 }, made = { .n = 0 };
	struct code *c = pad->c;
	size_t exit;

	emit_filter(c, tables->wanted, plain);
	emit_event(pad, ENTRY);
	emit_is_birth(c, &birth);
	if (tables->strikes) {
		emit_strike_filter(c, pad->env, tables->strikes, &keeps);
		emit_strike(c, pad->env, &keeps);
		JMP(c, &made);
		bind(c, &keeps);
	}
	emit_call(c);
	exit = c->n;
	x86_emit_save(c, false);
	bind(c, &made);
	emit_event(pad, EXIT);
	x86_emit_restore(c);
	emit_back(pad, plan);

	bind(c, &birth);
	emit_call(c);
	EMIT(c, 0x48, 0x89, 0xc1); /* mov %rax,%rcx */
	EMIT(c, 0xe3, 0x05);       /* jrcxz 1f */
	jump_back(c, exit);
	emit_back(pad, plan); /* 1: */
}

static int emit(struct pad *pad, const struct kymo_plan *plan, const struct kymo_pad_syscalls *syscalls,
		struct kymo_pad_layout *layout)
{
	const bool records = syscalls->first_id;
	const size_t begin = pad->c->n;
	const struct tables tables = { begin, syscalls->strikes ? begin + KYMO_PAD_SYSCALLS / 8 : 0 };
	uint64_t strikes[KYMO_PAD_SYSCALLS / 64] = { 0 };
	struct label unwanted = { .n = 0 }, plain = { .n = 0 };
	struct code *c = pad->c;
	int err;

	bytes(c, syscalls->wanted, KYMO_PAD_SYSCALLS / 8);
	for (uint32_t i = 0; i < KYMO_PAD_SYSCALLS && tables.strikes; i++)
		strikes[i / 64] |= (uint64_t)kymo_pad_strikes(i) << i % 64;
	if (tables.strikes)
		bytes(c, strikes, sizeof(strikes));
	layout->entry = (uint32_t)c->n;
	x86_emit_save(c, false);
	layout->inner = (uint32_t)c->n;
	if (records)
		emit_recorded(pad, plan, &tables, &unwanted);
	bind(c, &unwanted);
	if (tables.strikes) {
		emit_strike_filter(c, pad->env, tables.strikes, &plain);
		emit_strike(c, pad->env, &plain);
		x86_emit_restore(c);
		emit_back(pad, plan);
	}
	bind(c, &plain);
	err = x86_emit_way_out(c, plan, pad->sites[ENTRY].address, layout);
	for (int i = ENTRY; records && i <= EXIT; i++)
		emit_event_cold(pad, i);
	return err;
}

bool kymo_pad_is_syscall(const struct kymo_plan *plan)
{
	return plan->n_insns == 1 && !plan->n_copied && plan->window == 2 && plan->original[0] == 0x0f &&
	       plan->original[1] == 0x05;
}

int kymo_pad_emit_syscall(const struct kymo_pad_env *env, const struct kymo_plan *plan, uint64_t site,
			  uint64_t pad_address, const struct kymo_pad_syscalls *syscalls, uint8_t *out, size_t size,
			  struct kymo_pad_layout *ret)
{
	struct code c = { .out = out, .size = size, .address = pad_address };
	struct kymo_pad_layout layout = { .entry = 0 };
	struct pad pad = {
		.c = &c,
		.env = env,
		.sites = {
			[ENTRY] = { .address = site, .bias = site - plan->vaddr },
			[EXIT] = { .address = site, .bias = site - plan->vaddr },
		},
		.events = {
			[ENTRY] = { .id = syscalls->first_id, .args = arguments, .n_args = 6, .adds_number = true },
			[EXIT] = { .id = syscalls->exit_id, .args = result, .n_args = 1 },
		},
	};
	int err;

	if (!kymo_pad_is_syscall(plan) || pad_address % 32 || syscalls->exit_id > KYMO_EVENT_ID_MAX ||
	    syscalls->first_id > KYMO_EVENT_ID_MAX - KYMO_PAD_SYSCALLS)
		return -EINVAL;
	if (size < kymo_pad_size_max(NULL, 1))
		return -ENOSPC;
	if (env->rseq_rings)
		for (int i = 0; i < N_EVENTS; i++)
			pad.descriptors[i][2] = 32u * (unsigned int)i;
	c.n = env->rseq_rings ? 32 * N_EVENTS : 0;
	err = emit(&pad, plan, syscalls, &layout);
	err = err ? err : code_error(&c);
	if (err)
		return err;
	layout.size = (uint32_t)c.n;
	*ret = layout;
	return 0;
}
