/*
 * Pads. What runs at a probe, in order:
 *
 *	step over the red zone; keep rax, rdx, r10, r11 and the flags
 *	for each event:
 *		the live byte: the kind of process, and how threads are told apart; a forked child records nothing
 *		a restartable sequence: it takes space in the ring of this CPU and writes stamp, header, tid and
 *		arguments. The store of the ring's new position comes last and makes the record count
 *		or a lock, if the thread has no such sequence: the same between an exchange and a store
 *	restore; the displaced instructions; jump back
 *
 * Why this is right:
 *
 * 1. Nothing here faults. Stores go to rings whose memory was allocated before (fallocate). Loads go to rings, the live
 * page, the thread control block (in states that say it is there) and the data of the site's module. They also go to a
 * payload that the program has just written and, checked, to the stack. Other memory is read by a system call, before
 * the record is begun (docs/internals/reading.md).
 * 2. Nothing waits. A taken lock sends the producer to another ring; no ring at all counts a loss.
 * 3. A record counts with one store at its end. A thread may never get there (a signal handler that longjmps, death).
 * Then it leaves nothing behind except, if it used a lock, a locked ring with whole records in it.
 * 4. The kernel restarts a sequence that was preempted, migrated or interrupted by a signal before its last store
 * (rseq(2)). So a ring of this kind has one producer at a time: the threads of its CPU. This holds for threads that are
 * registered with the kernel. A thread that is not has a cpu_id that says so: guard.c ensures this for new threads. It
 * also keeps a list of threads that wait for a vfork child, which has its parent's thread control block but is not
 * registered: that child records nothing, and its hits are counted in the header. A restart computes everything anew
 * from the frame and from registers that the pad never changes; what was half written lies after the position. Losses
 * are counted outside of sequences, so once.
 * 5. A sequence loads `end` before `cur`, and a thread that changes the sub-buffer stores `cur` before `end` (x86-TSO
 * keeps both orders), with `end` zero before: so `cur` is never taken for one sub-buffer and `end` for another.
 * 6. Stamps of one ring never decrease. Sequences of one CPU are in order, and guest.c waits out the reordering of
 * rdtsc when it opens a sub-buffer. Records of one hit, of several events and recordings, have one stamp if their rings
 * have no later one: a sequence keeps the ring's last. Under a lock the value is raised to the ring's last one, because
 * rdtsc may run ahead of the exchange.
 * 7. The sequence's descriptor pointer is zero whenever a thread is outside of a pad: each way out clears it, and the
 * kernel does when it aborts a sequence or delivers a signal. So the descriptor may be unmapped with the pad.
 * 8. Each store to a ring is within its sub-buffers or to a word of its control block, whatever those words say and
 * whenever they change: another process may share the memory, or the program may have a wild pointer. What is a limit
 * is in the code memory (struct kymo_pad_rings). Nor can the words keep a thread in a loop.
 * 9. The flags come back by sahf and an addition that sets OF; DF, AC and the rest are never changed. Vector and x87
 *    state is not touched.
 *
 * docs/internals/rings.md has the measurements behind this, and why the thread's records that are left out are known.
 */
#include "arch/x86_64/emit.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "arch/pad.h"
#include "arch/print.h"
#include "arch/trap.h"
#include "arch/writes.h"
#include "arch/x86_64/anchor.h"
#include "arch/x86_64/arguments.h"
#include "arch/x86_64/chain.h"
#include "arch/x86_64/code.h"
#include "arch/x86_64/compose.h"
#include "arch/x86_64/event.h"
#include "arch/x86_64/form.h"
#include "arch/x86_64/form_float.h"
#include "arch/x86_64/frame.h"
#include "arch/x86_64/guest.h"
#include "arch/x86_64/low_stack.h"
#include "arch/x86_64/mute.h"
#include "arch/x86_64/print.h"
#include "arch/x86_64/reads.h"
#include "arch/x86_64/sample.h"
#include "arch/x86_64/writes.h"
#include "wire/event.h"
#include "wire/shared.h"

_Static_assert(KYMO_WIRE_PATCH_MAX == KYMO_PATCH_MAX && KYMO_WIRE_WINDOW_MAX == KYMO_WINDOW_MAX,
	       "the journal holds a plan");
_Static_assert(KYMO_PAD_LIVE_VFORK_LIST + sizeof(struct kymo_wire_vforks) <= 4096, "the live page holds the list");
_Static_assert(KYMO_PAD_LIVE_TRAPS + 4 * KYMO_PAD_TRAPS <= KYMO_PAD_LIVE_SAMPLES, "… and the words of traps");

#define EVENT_SIZE_MAX 3328u  /* code bytes of one event in both forms, with 8 arguments from memory */
#define OP_SIZE_MAX 112u      /* of one operation of a form */
#define LOAD_SIZE_MAX 192u    /* of one that reads memory */
#define COMPOSE_SIZE_MAX 512u /* of an argument of an event that is composed, without its form */
#define FIXED_SIZE_MAX 512u   /* around the events: frame, anchor, watch, hop */

/* ---- the frame ------------------------------------------------------------------------------- */

void x86_emit_save(struct code *c, bool flags)
{
	rsp_slot(c, 0x8d, RSP, -FRAME); /* lea -FRAME(%rsp),%rsp: no flags */
	if (flags) {
		EMIT(c, 0x9c);                          /* pushfq */
		EMIT(c, 0x8f, 0x44, 0x24, SLOT_RFLAGS); /* pop SLOT(%rsp) */
	}
	rsp_slot(c, 0x89, RAX, SLOT_RAX);
	EMIT(c, 0x9f, 0x0f, 0x90, 0xc0);       /* lahf; seto %al */
	EMIT(c, 0x89, 0x44, 0x24, SLOT_FLAGS); /* mov %eax,FLAGS(%rsp) */
	rsp_slot(c, 0x89, RDX, SLOT_RDX);
	rsp_slot(c, 0x89, R10, SLOT_R10);
	rsp_slot(c, 0x89, R11, SLOT_R11);
}

void x86_emit_restore(struct code *c)
{
	EMIT(c, 0x8b, 0x44, 0x24, SLOT_FLAGS); /* mov FLAGS(%rsp),%eax */
	EMIT(c, 0x04, 0x7f, 0x9e);             /* add $0x7f,%al; sahf */
	rsp_slot(c, 0x8b, RAX, SLOT_RAX);
	rsp_slot(c, 0x8b, RDX, SLOT_RDX);
	rsp_slot(c, 0x8b, R10, SLOT_R10);
	rsp_slot(c, 0x8b, R11, SLOT_R11);
	rsp_slot(c, 0x8d, RSP, FRAME);
}

static size_t form_size(const struct kymo_form *form)
{
	size_t size = 0;

	for (uint32_t i = 0; form && i < form->n; i++)
		size += form->ops[i].code == KYMO_FORM_LOAD         ? LOAD_SIZE_MAX
			: form->ops[i].code == KYMO_FORM_STORE      ? LOAD_SIZE_MAX
			: kymo_form_is_of_floats(form->ops[i].code) ? X86_FLOAT_SIZE_MAX
								    : OP_SIZE_MAX;
	return size;
}

size_t kymo_pad_forms_size(const struct kymo_pad_event *event)
{
	size_t size = form_size(event->filter) + (event->sample.kind ? X86_SAMPLE_SIZE_MAX : 0);

	for (size_t i = 0; i < event->n_args; i++)
		if (event->args[i].kind == KYMO_FETCH_FORM)
			size += form_size(event->args[i].form) * (event->args[i].writes ? 2 : 1) +
				(event->args[i].writes ? X86_WRITE_SIZE_MAX : 0);
	for (size_t i = 0; event->print && i < event->print->n; i++)
		size += form_size(&event->print->args[i]);
	size += x86_print_size(event->print);
	if (x86_is_composed(event))
		size += event->n_args * COMPOSE_SIZE_MAX;
	if (x86_chain(event))
		size += X86_CHAIN_SIZE_MAX;
	return 4 * size; /* for threads from the text and for others, in line and under a lock */
}

size_t kymo_pad_size_max(const struct kymo_pad_event *events, size_t n_events)
{
	size_t size = FIXED_SIZE_MAX + KYMO_RELOCATED_MAX + 2 * n_events * (EVENT_SIZE_MAX + 32);

	for (size_t i = 0; i < n_events && events; i++)
		size += kymo_pad_forms_size(&events[i]);
	return size;
}

const uint8_t *kymo_pad_guest(size_t *size_ret)
{
	struct kymo_guest_image guest;

	kymo_guest_image(&guest);
	*size_ret = guest.size;
	return guest.bytes;
}

static bool may_trap(const struct kymo_pad_event *event)
{
	return !event->n_args && !event->sample.kind && (!event->filter || kymo_pad_can_print(event->filter)) &&
	       x86_print_is_valid(event->print);
}

static bool are_valid(const struct kymo_pad_event *events, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if ((events[i].trap ? i || !may_trap(&events[i]) : !events[i].id) ||
		    !x86_sample_is_valid(&events[i].sample) || events[i].id > KYMO_EVENT_ID_MAX ||
		    events[i].n_args > KYMO_EVENT_MAX_ARGS ||
		    (events[i].filter && !x86_form_is_valid(events[i].filter)) || !x86_writes_are_valid(&events[i]) ||
		    (i + 1 < n && kymo_pad_writes(&events[i])))
			return false;
		for (size_t k = 0; k < events[i].n_args; k++)
			if (!x86_fetch_is_valid(&events[i].args[k]) ||
			    (events[i].args[k].kind == KYMO_FETCH_PAYLOAD && events[i].n_args != 1) ||
			    ((events[i].args[k].kind == KYMO_FETCH_COPY ||
			      events[i].args[k].kind == KYMO_FETCH_CHAIN) &&
			     k + 1 != events[i].n_args))
				return false;
		if (kymo_pad_composed_size(events[i].args, events[i].n_args) > KYMO_PAD_COMPOSED_MAX)
			return false;
	}
	return true;
}

int x86_emit_way_out(struct code *c, const struct kymo_plan *plan, uint64_t site, struct kymo_pad_layout *layout)
{
	int moved;

	layout->displaced = (uint32_t)c->n;
	x86_emit_restore(c);
	if (c->full)
		return -ENOSPC;
	if (c->n + KYMO_RELOCATED_MAX > UINT16_MAX)
		return -E2BIG;
	moved = kymo_relocate(plan, site, c->address + c->n, c->out + c->n, c->size - c->n, layout->insn_at);
	if (moved < 0)
		return moved;
	for (unsigned int i = 0; i <= plan->n_insns + plan->n_copied; i++)
		layout->insn_at[i] = (uint16_t)(layout->insn_at[i] + c->n);
	c->n += (size_t)moved;
	return 0;
}

/* With the frame in place: to the code that `next` names. */
static void emit_hop(struct code *c, uint64_t next, struct kymo_pad_layout *layout)
{
	EMIT(c, 0x48, 0xa1); /* movabs next,%rax */
	imm64(c, next);
	layout->hop = (uint32_t)c->n;
	EMIT(c, 0xff, 0xe0); /* jmp *%rax */
}

/* sigaction(%edi, %rsi, …): a jump to `done` unless it sets a handler of one of the signals; that is noted at r10. */
static void emit_signal(struct code *c, uint32_t signals, struct label *done)
{
	EMIT(c, 0x83, 0xff, 0x1f); /* cmp $31,%edi */
	JA(c, done);
	EMIT(c, 0xb8); /* mov $signals,%eax */
	imm32(c, signals);
	EMIT(c, 0x0f, 0xa3, 0xf8); /* bt %edi,%eax */
	JAE(c, done);
	EMIT(c, 0x48, 0x85, 0xf6); /* test %rsi,%rsi */
	JE(c, done);
	EMIT(c, 0xf0, 0x41, 0x0f, 0xab, 0x7a,
	     offsetof(struct kymo_wire_watch, signals)); /* lock bts %edi,signals(%r10) */
}

/* Ask the recorder to look, and wait for it: no system call, and not for ever. */
static void emit_watch(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_chain *chain)
{
	struct label done = { .n = 0 };
	size_t again;

	compare_byte(c, env->live, 0);
	JE(c, &done);
	movabs(c, R10, chain->watch);
	if (chain->watched_signals)
		emit_signal(c, chain->watched_signals, &done);
	EMIT(c, 0x41, 0xbb, 1, 0, 0, 0);       /* mov $1,%r11d */
	EMIT(c, 0xf0, 0x45, 0x0f, 0xc1, 0x1a); /* lock xadd %r11d,requests(%r10) */
	EMIT(c, 0x41, 0x83, 0x7a, offsetof(struct kymo_wire_watch, given_up), 0x00); /* cmpl $0,given_up(%r10) */
	JNE(c, &done);
	EMIT(c, 0xba); /* mov $rounds,%edx */
	imm32(c, KYMO_PAD_WATCH_ROUNDS);
	again = c->n;
	EMIT(c, 0xf3, 0x90);           /* pause */
	compare_byte(c, env->live, 0); /* a signal handler may have forked: the child has no such memory */
	JE(c, &done);
	EMIT(c, 0x41, 0x8b, 0x42, offsetof(struct kymo_wire_watch, answers)); /* mov answers(%r10),%eax */
	EMIT(c, 0x44, 0x29, 0xd8);                                            /* sub %r11d,%eax */
	EMIT(c, 0x85, 0xc0);                                                  /* test %eax,%eax */
	branch(c, &done, "\x0f\x8f", 2);                                      /* jg */
	EMIT(c, 0xff, 0xca);                                                  /* dec %edx */
	EMIT(c, 0x0f, 0x85);                                                  /* jne again */
	imm32(c, (int64_t)again - (int64_t)(c->n + 4));
	EMIT(c, 0x41, 0xc7, 0x42, offsetof(struct kymo_wire_watch, given_up), 1, 0, 0, 0); /* movl $1,given_up(%r10) */
	bind(c, &done);
}

static bool has_more_than_events(const struct kymo_pad_chain *chain)
{
	return chain->watch || chain->mutes;
}

/* What threads do here beside making records. */
static void emit_more(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_chain *chain)
{
	struct label done = { .n = 0 };

	if (chain->watch)
		emit_watch(c, env, chain);
	if (chain->mutes) {
		compare_byte(c, env->live, 0); /* a forked child has no such memory */
		JE(c, &done);
		x86_emit_mute(c, env, R10);
		bind(c, &done);
	}
}

/* The frame comes with no stamp in it. */
static void clear_stamp(struct code *c)
{
	EMIT(c, 0x48, 0xc7, 0x44, 0x24, SLOT_TSC, 0, 0, 0, 0); /* movq $0,tsc(%rsp) */
}

/* An evicted instruction: nothing is recorded. */
static int emit_silent(struct code *c, const struct kymo_plan *plan, uint64_t site, const struct kymo_pad_chain *chain,
		       struct kymo_pad_layout *layout)
{
	int err;

	if (chain->next) {
		x86_emit_save(c, chain->save_flags);
		clear_stamp(c);
		layout->inner = (uint32_t)c->n;
		emit_hop(c, chain->next, layout);
	}
	err = x86_emit_way_out(c, plan, site, layout);
	if (!chain->next) {
		layout->inner = layout->displaced;
		layout->entry = layout->insn_at[0];
	}
	return err;
}

/* A jump to `skip` where no record is wanted. Outside of the sequence: what restarts that needs no filter again. */
static void emit_filter(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
			const struct x86_pad_site *site, struct label *skip)
{
	if (!event->filter)
		return;
	x86_emit_form(c, env, site, event->filter, !event->retval_is_unknown, skip);
	EMIT(c, 0x48, 0x85, 0xc0); /* test %rax,%rax */
	JE(c, skip);
}

/* What comes before the record, and needs nothing of a ring: what a restart does not do again. */
static void emit_before(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
			const struct x86_pad_site *site, struct label *skip, struct label *no_room)
{
	x86_begin_writes(c, event);
	if (kymo_pad_reads(event))
		x86_begin_reads(c, env, event, no_room);
	emit_filter(c, env, event, site, skip);
	x86_emit_sample(c, env, &event->sample, skip);
	x86_decide_writes(c, env, event);
	if (x86_is_composed(event))
		x86_compose(c, env, event, site);
}

/* The function is not run: the frame is removed, and the stack pointer is as at the entry. */
static void emit_return(struct code *c)
{
	struct label runs = { .n = 0 };

	x86_check_return(c, &runs);
	x86_emit_restore(c);
	EMIT(c, 0xc3); /* ret */
	bind(c, &runs);
}

static void emit_after(struct code *c, const struct kymo_pad_event *event, struct label *skip, struct label *no_room)
{
	bind(c, skip);
	if (kymo_pad_reads(event))
		x86_end_reads(c);
	bind(c, no_room);
	if (x86_may_return(event))
		emit_return(c);
}

/* What all pads with events start with. */
static void emit_start(struct code *c, const struct kymo_pad_env *env, const struct kymo_plan *plan,
		       const struct kymo_pad_event *events, size_t n, const struct kymo_pad_chain *chain,
		       struct x86_stack_check *check)
{
	x86_emit_stack_check(c, env, plan, check);
	x86_emit_save(c, chain->save_flags || kymo_pad_wants_flags(events, n));
	if (chain->next || n > 1) /* the first record may be left out */
		clear_stamp(c);
}

/* The events in their hot form, once; `table` is where their descriptors are. */
static void emit_hot(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *events, size_t n,
		     const struct x86_pad_site *site, size_t table, bool is_inner, bool is_followed,
		     struct x86_event_code *parts, uint64_t (*descriptors)[3])
{
	for (size_t i = 0; i < n; i++) {
		struct x86_stamp_use use = { .takes = is_inner || i > 0,
					     .leaves = is_inner || is_followed || i + 1 < n };
		struct label skip = { .n = 0 }, no_room = { .n = 0 };

		descriptors[i][2] = table + 32 * i;
		emit_before(c, env, &events[i], site, &skip, &no_room);
		x86_event_sequence(c, env, &events[i], site, &parts[i], descriptors[i], use);
		emit_after(c, &events[i], &skip, &no_room);
	}
}

static void emit_all_cold(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *events, size_t n,
			  const struct x86_pad_site *site, struct x86_event_code *parts, uint64_t (*descriptors)[3])
{
	for (size_t i = 0; i < n; i++) {
		c->lowered = x86_reads_lowered(&events[i]);
		x86_event_cold(c, env, &events[i], site, &parts[i]);
		c->lowered = 0;
		x86_event_descriptor(c, descriptors[i], parts[i].restart);
	}
}

/*
 * With sequences the events are there twice: for threads from the text, which have no stamp, and for those from another
 * recording's pad, which may have one. Descriptors come first: they want 32-byte alignment.
 */
static int emit_sequenced(struct code *c, const struct kymo_pad_env *env, const struct kymo_plan *plan,
			  const struct x86_pad_site *site, const struct kymo_pad_event *events, size_t n,
			  const struct kymo_pad_chain *chain, struct kymo_pad_layout *layout)
{
	struct x86_event_code parts[2][KYMO_PAD_MAX_EVENTS];
	uint64_t descriptors[2][KYMO_PAD_MAX_EVENTS][3];
	struct x86_stack_check check = { .resume = 0 };
	size_t end;
	int err;

	memset(parts, 0, sizeof(parts));
	emit_start(c, env, plan, events, n, chain, &check);
	emit_hot(c, env, events, n, site, 0, false, chain->next != 0, parts[0], descriptors[0]);
	end = c->n;
	emit_more(c, env, chain);
	if (n && x86_has_anchors(env, chain))
		x86_emit_anchor(c, env);
	if (chain->next)
		emit_hop(c, chain->next, layout);
	err = x86_emit_way_out(c, plan, site->address, layout);
	if (err)
		return err;
	x86_emit_stack_low(c, env, plan, &check, layout);
	layout->inner = (uint32_t)c->n;
	emit_hot(c, env, events, n, site, 32 * n, true, chain->next != 0, parts[1], descriptors[1]);
	jump_back(c, end);
	emit_all_cold(c, env, events, n, site, parts[0], descriptors[0]);
	emit_all_cold(c, env, events, n, site, parts[1], descriptors[1]);
	return 0;
}

static int emit_unsequenced(struct code *c, const struct kymo_pad_env *env, const struct kymo_plan *plan,
			    const struct x86_pad_site *site, const struct kymo_pad_event *events, size_t n,
			    const struct kymo_pad_chain *chain, struct kymo_pad_layout *layout)
{
	struct x86_event_code parts[KYMO_PAD_MAX_EVENTS];
	struct x86_stack_check check = { .resume = 0 };
	int err;

	memset(parts, 0, sizeof(parts));
	emit_start(c, env, plan, events, n, chain, &check);
	layout->inner = (uint32_t)c->n;
	for (size_t i = 0; i < n; i++) {
		struct label skip = { .n = 0 }, no_room = { .n = 0 };

		emit_before(c, env, &events[i], site, &skip, &no_room);
		x86_event_plain(c, env, &events[i], site, &parts[i]);
		emit_after(c, &events[i], &skip, &no_room);
	}
	emit_more(c, env, chain);
	if (n && x86_has_anchors(env, chain))
		x86_emit_anchor(c, env);
	if (chain->next)
		emit_hop(c, chain->next, layout);
	err = x86_emit_way_out(c, plan, site->address, layout);
	if (!err)
		x86_emit_stack_low(c, env, plan, &check, layout);
	for (size_t i = 0; i < n && !err; i++) {
		c->lowered = x86_reads_lowered(&events[i]);
		x86_event_plain_states(c, env, &parts[i]);
	}
	c->lowered = 0;
	return err;
}

/* Flags: equal where the word of a trap says that there is no tracer. */
static void test_word(struct code *c, const struct kymo_pad_event *event)
{
	rip_to(c, "\x83\x3d", 2, event->trap, 1); /* cmpl $0,word(%rip) */
	byte(c, 0);
}

/* What leads to the breakpoint instruction, after the way out. Near the end of a stack there is no frame. */
static void emit_trap(struct code *c, const struct kymo_pad_event *event, struct label *is_near, struct label *is_true,
		      struct label *full, struct kymo_pad_layout *layout)
{
	struct label trap = { .n = 0 };

	if (is_near->n) {
		bind(c, is_near);
		test_word(c, event);
		branch_back(c, "\x0f\x84", 2, layout->insn_at[0]); /* je */
		JMP(c, &trap);
	}
	bind(c, is_true);
	layout->fault = (uint32_t)c->n;
	test_word(c, event);
	branch_back(c, "\x0f\x84", 2, layout->displaced); /* je */
	x86_emit_restore(c);
	bind(c, &trap);
	layout->trap = (uint32_t)c->n;
	byte(c, KYMO_TRAP_BYTE);
	jump_back(c, layout->insn_at[0]);
	if (event->print)
		x86_print_full(c, full, layout);
}

/*
 * No record: a condition, and where it holds a trap. Where flags are dead the word is tested in front of all else: the
 * stack is not used where it is 0, so never without a tracer. Else flags have to be kept first.
 */
static int emit_conditional(struct code *c, const struct kymo_pad_env *env, const struct kymo_plan *plan,
			    const struct x86_pad_site *site, const struct kymo_pad_event *event,
			    struct kymo_pad_layout *layout)
{
	struct label not_wanted = { .n = 0 }, out = { .n = 0 }, is_near = { .n = 0 }, is_true = { .n = 0 },
		     full = { .n = 0 };
	struct x86_stack_check check = { .resume = 0 };
	struct kymo_plan plain = *plan;
	int err;

	plain.scratch = 0; /* no register is changed outside of the frame: leave_pad.c */
	if (plain.flags_are_dead) {
		test_word(c, event);
		JE(c, &not_wanted);
	}
	x86_emit_stack_check(c, env, &plain, &check);
	layout->save = (uint32_t)c->n;
	x86_emit_save(c, false);
	layout->inner = (uint32_t)c->n;
	test_word(c, event);
	JE(c, &out);
	layout->condition = (uint32_t)c->n;
	if (event->filter) {
		x86_emit_form(c, env, site, event->filter, !event->retval_is_unknown, &is_true);
		EMIT(c, 0x48, 0x85, 0xc0); /* test %rax,%rax */
		if (event->print)
			JE(c, &out);
		else
			JNE(c, &is_true);
	} else if (!event->print) {
		JMP(c, &is_true);
	}
	if (event->print)
		x86_emit_print(c, env, site, event, &full, &is_true, layout);
	layout->condition_end = (uint32_t)c->n;
	bind(c, &out);
	err = x86_emit_way_out(c, &plain, site->address, layout);
	if (err)
		return err;
	if (not_wanted.n) {
		bind(c, &not_wanted);
		jump_back(c, layout->insn_at[0]);
	}
	x86_emit_stack_near(c, env, &plain, &check, &is_near);
	emit_trap(c, event, &is_near, &is_true, &full, layout);
	return 0;
}

static int emit_pad(const struct kymo_pad_env *env, const struct kymo_plan *plan, uint64_t site, uint64_t pad,
		    const struct kymo_pad_event *events, size_t n_events, const struct kymo_pad_chain *chain,
		    uint8_t *out, size_t size, struct kymo_pad_layout *ret)
{
	const bool has_trap = n_events && events[0].trap;
	size_t table = env->rseq_rings && !has_trap ? 2 * 32 * n_events : 0;
	struct code c = { .out = out, .size = size, .address = pad, .n = table };
	struct kymo_pad_layout layout = { .entry = (uint32_t)table };
	struct x86_pad_site at = { .address = site,
				   .bias = site - plan->vaddr,
				   .file = chain->file,
				   .loads_directly = n_events && events[0].trap };
	int err;

	if (!are_valid(events, n_events) || n_events > KYMO_PAD_MAX_EVENTS || (table && pad % 32) ||
	    (has_trap && (n_events > 1 || chain->next || has_more_than_events(chain))) ||
	    (n_events && kymo_pad_writes(&events[n_events - 1]) && (chain->next || has_more_than_events(chain))))
		return -EINVAL;
	if (size < table + FIXED_SIZE_MAX)
		return -ENOSPC;
	if (!n_events && !has_more_than_events(chain))
		err = emit_silent(&c, plan, site, chain, &layout);
	else if (has_trap)
		err = emit_conditional(&c, env, plan, &at, events, &layout);
	else if (table)
		err = emit_sequenced(&c, env, plan, &at, events, n_events, chain, &layout);
	else
		err = emit_unsequenced(&c, env, plan, &at, events, n_events, chain, &layout);
	err = err ? err : code_error(&c);
	if (err)
		return err;
	layout.size = (uint32_t)c.n;
	*ret = layout;
	return 0;
}

/*
 * What looks at another thread's stack takes of what the displaced instructions leave of their room. Where they leave
 * too little the pad does without: to reckon with it in each pad would take addresses away from puns.
 */
int kymo_pad_emit(const struct kymo_pad_env *env, const struct kymo_plan *plan, uint64_t site, uint64_t pad,
		  const struct kymo_pad_event *events, size_t n_events, const struct kymo_pad_chain *chain,
		  uint8_t *out, size_t size, struct kymo_pad_layout *ret)
{
	int err = emit_pad(env, plan, site, pad, events, n_events, chain, out, size, ret);

	if (err == -ENOSPC && plan->scratch) {
		struct kymo_plan without = *plan;

		without.scratch = 0;
		err = emit_pad(env, &without, site, pad, events, n_events, chain, out, size, ret);
	}
	return err;
}
