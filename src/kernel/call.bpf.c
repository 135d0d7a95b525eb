/*
 * What runs at the tracepoints of system calls. calls.c loads this, and says in `options` and `rows` what is wanted.
 *
 * A sample that is known to be small is made in the ring itself (call_ring.h). Any other is made in memory of the CPU's
 * own, and handed to the ring as a whole. Programs at these tracepoints run with preemption off, and none runs within
 * another. Between taking room in the ring and publishing the sample no path returns.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "kernel/call_lists.bpf.h"
#include "kernel/follow.bpf.h"

struct pt_regs;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* calls.c: a CPU each */
	__type(key, uint32_t);
	__type(value, struct room);
} scratch SEC(".maps");

/* Threads in whose call copies failed as it began; the ring counts them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, uint32_t);
	__type(value, uint32_t);
} again SEC(".maps");

struct call {
	void *ctx;
	const uint8_t *regs;
	uint64_t machine_ids; /* tid, and pid << 32 */
	uint64_t ids;         /* that samples carry */
	uint64_t row, value;
	uint32_t cpu;
	uint32_t is_i386; /* 0 or 1 */
};

/* ---- which processes ------------------------------------------------------------------------------------- */

static __always_inline bool is_wanted(uint64_t ids)
{
	uint32_t pid = ids >> 32;

	if (options.thread && (int32_t)ids != options.thread)
		return false;
	return !options.has_processes || processes.bits[pid % KERNEL_PIDS / 64] >> pid % 64 & 1;
}

/* A process that is not in the namespace is named by the machine's ids. */
static __always_inline bool find_ids(uint64_t machine_ids, uint64_t *ret)
{
	struct bpf_pidns_info info;

	*ret = machine_ids;
	if (options.ns_ino && !bpf_get_ns_current_pid_tgid(options.ns_dev, options.ns_ino, &info, sizeof(info)))
		*ret = (uint64_t)info.tgid << 32 | info.pid;
	return !options.not_tgid || (int32_t)(*ret >> 32) != options.not_tgid;
}

static __always_inline uint64_t ids_of(const struct task_struct *task)
{
	return (uint64_t)(uint32_t)task->tgid << 32 | (uint32_t)task->pid;
}

/* Whether the thread was noted. */
static __always_inline bool forget_noted(struct call_ring_head *head, uint64_t machine_ids)
{
	uint32_t tid = (uint32_t)machine_ids;

	if (bpf_map_delete_elem(&again, &tid))
		return false;
	__sync_fetch_and_add(&head->noted, -1);
	return true;
}

static __always_inline void note_incomplete(struct call_ring_head *head, const struct kernel_call *sample,
					    uint64_t machine_ids)
{
	uint32_t tid = (uint32_t)machine_ids;

	if (sample->is_incomplete && !bpf_map_update_elem(&again, &tid, &(uint32_t){ 1 }, BPF_NOEXIST))
		__sync_fetch_and_add(&head->noted, 1);
}

/* ---- samples --------------------------------------------------------------------------------- */

static __always_inline void fill_sample(struct kernel_call *sample, struct call_ring_head *head, uint32_t cpu,
					enum kernel_call_what what, uint64_t ids, uint64_t value)
{
	sample->cpu = cpu;
	sample->lost = ONCE(head->lost);
	sample->what = what;
	sample->is_i386 = 0;
	sample->is_incomplete = 0;
	*(uint64_t *)&sample->tid = ids;
	sample->value = value;
	if (options.has_names)
		bpf_get_current_comm(sample->name, sizeof(sample->name));
	sample->ns = options.has_times ? bpf_ktime_get_ns() : 0;
}

/* Bytes of a sample without copies. */
static __always_inline uint32_t plain_size(enum kernel_call_what what)
{
	if (options.has_names)
		return offsetof(struct kernel_call, copies);
	if (what == KERNEL_CALL_LEAVE || what == KERNEL_CALL_END)
		return offsetof(struct kernel_call, words);
	return offsetof(struct kernel_call, name);
}

#define REGISTER(type, at) (*(const type *)(call->regs + (at)))

static __always_inline void fill_call(struct kernel_call *sample, struct call_ring_head *head, const struct call *call,
				      enum kernel_call_what what, bool has_words)
{
	fill_sample(sample, head, call->cpu, what, call->ids, call->value);
	sample->is_i386 = call->is_i386;
	if (what == KERNEL_CALL_LEAVE)
		sample->number = REGISTER(uint64_t, options.layout.number);
	if (!has_words)
		return;
	sample->words[KERNEL_CALL_STACK_POINTER] = REGISTER(uint64_t, options.layout.stack_pointer);
	if (call->is_i386)
		for (int i = 0; i < 6; i++)
			sample->words[i] = REGISTER(uint32_t, options.layout.args32[i]);
	else
		for (int i = 0; i < 6; i++)
			sample->words[i] = REGISTER(uint64_t, options.layout.args[i]);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static __always_inline bool look_at_call(struct call *call)
{
	const struct task_struct *task = (void *)bpf_get_current_task_btf();

	call->machine_ids = ids_of(task);
	if (!is_wanted(call->machine_ids))
		return false;
	call->is_i386 = task->thread_info.status >> options.i386_shift & 1;
	return true;
}

/* After the exec of a 32-bit program the number of a noted call is another call's. */
static __always_inline const struct kernel_call_row *find_row(struct call *call, bool is_exit, bool is_noted)
{
	uint64_t number = is_exit ? REGISTER(uint64_t, options.layout.number) : call->value;
	uint64_t table = is_exit + KERNEL_CALL_I386 * call->is_i386;

	if (is_noted && !call->is_i386)
		table = KERNEL_CALL_AGAIN;
	if (number > KERNEL_CALL_NUMBERS - 1)
		number = KERNEL_CALL_NUMBERS - 1;
	call->row = forget(table * KERNEL_CALL_NUMBERS + number, call->machine_ids);
	return row_at(call->row);
}

/* Copies may be large: a program of its own. */
static __always_inline int copy_call(struct call *call, bool is_exit)
{
	struct call_ring_head *head = find_ring();
	const struct kernel_call_row *row;
	struct kernel_call *sample;
	struct room *room;
	uint64_t size;

	if (!head)
		return 0;
	call->cpu = bpf_get_smp_processor_id();
	call->machine_ids = line_of(head, call->cpu)->ids;
	call->row = line_of(head, call->cpu)->row;
	if (!find_ids(call->machine_ids, &call->ids))
		return 0;
	room = bpf_map_lookup_elem(&scratch, &call->cpu);
	row = row_at(call->row);
	if (!room || !row)
		return 0;
	fill_call(&room->sample, head, call, is_exit ? KERNEL_CALL_LEAVE : KERNEL_CALL_ENTER, true);
	room->sample.position = offsetof(struct kernel_call, copies);
	make_copies(room, row, call->row);
	if (!is_exit)
		note_incomplete(head, &room->sample, call->machine_ids);
	size = ONCE(room->sample.position);
	if (size > KERNEL_CALL_SCRATCH || size > options.record_max) {
		__sync_fetch_and_add(&head->lost, 1);
		return 0;
	}
	room->sample.stride = room->sample.size = size;
	sample = take_room(head, call->cpu, size);
	if (!sample)
		return 0;
	bpf_probe_read_kernel(sample, size, room);
	publish(head, call->cpu);
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(copy_entry, struct pt_regs *regs, long id)
{
	return copy_call(&(struct call){ .regs = (void *)regs, .value = id }, false);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(copy_exit, struct pt_regs *regs, long ret)
{
	return copy_call(&(struct call){ .regs = (void *)regs, .value = ret }, true);
}

/* calls.c puts the programs there, if a row needs them. */
struct program_array {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, uint32_t);
} copying_entry SEC(".maps"), copying_exit SEC(".maps");

/*
 * Copy what is known to be small, or jump to the program for the rest. A program that has such a jump gets no private
 * stack from the kernel; its check of copies does not know a private stack for a stack.
 */
static __always_inline int see_call(struct call *call, bool is_exit)
{
	struct call_ring_head *head;
	const struct kernel_call_row *row;
	struct call_ring_line *line;
	struct kernel_call *sample;
	uint64_t size;

	if (!look_at_call(call))
		return 0;
	head = find_ring();
	if (!head)
		return 0;
	row = find_row(call, is_exit, is_exit && ONCE(head->noted) && forget_noted(head, call->machine_ids));
	if (!row || !row->is_seen)
		return 0;
	if (row->n && row->room < 0)
		goto large;
	if (!find_ids(call->machine_ids, &call->ids))
		return 0;
	call->cpu = bpf_get_smp_processor_id();
	size = row->n ? offsetof(struct kernel_call, copies) + row->room
		      : plain_size(is_exit ? KERNEL_CALL_LEAVE : KERNEL_CALL_ENTER);
	sample = take_room(head, call->cpu, size);
	if (!sample)
		return 0;
	sample->stride = size;
	fill_call(sample, head, call, is_exit ? KERNEL_CALL_LEAVE : KERNEL_CALL_ENTER, !is_exit || row->n);
	if (row->n) {
		size = make_small_copies(sample, row);
		if (!is_exit)
			note_incomplete(head, sample, call->machine_ids);
	}
	sample->size = size;
	publish(head, call->cpu);
	return 0;
large:
	line = line_of(head, bpf_get_smp_processor_id());
	ONCE(line->ids) = call->machine_ids; /* volatile: clang does not know that the jump leads to a reader */
	ONCE(line->row) = call->row;
	if (is_exit)
		bpf_tail_call_static(call->ctx, &copying_exit, 0);
	else
		bpf_tail_call_static(call->ctx, &copying_entry, 0);
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(see_entry, struct pt_regs *regs, long id)
{
	return see_call(&(struct call){ .ctx = ctx, .regs = (void *)regs, .value = id }, false);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(see_exit, struct pt_regs *regs, long ret)
{
	return see_call(&(struct call){ .ctx = ctx, .regs = (void *)regs, .value = ret }, true);
}

/* ---- signals and ends ------------------------------------------------------------------------ */

static __always_inline struct kernel_call *begin_event(struct call_ring_head *head, uint64_t machine_ids,
						       enum kernel_call_what what, uint64_t value, uint32_t *cpu_ret)
{
	struct kernel_call *sample;
	uint32_t size = plain_size(what);
	uint64_t ids;

	if (!find_ids(machine_ids, &ids))
		return NULL;
	*cpu_ret = bpf_get_smp_processor_id();
	sample = take_room(head, *cpu_ret, size);
	if (!sample)
		return NULL;
	sample->stride = sample->size = size;
	fill_sample(sample, head, *cpu_ret, what, ids, value);
	return sample;
}

/* `info` is 0 or 1 for a signal that has none. */
SEC("tp_btf/signal_deliver")
int BPF_PROG(see_signal, int number, const void *info)
{
	struct call_ring_head *head = find_ring();
	uint64_t ids = bpf_get_current_pid_tgid();
	struct kernel_call *sample;
	uint32_t cpu;

	if (!head || !is_wanted(ids))
		return 0;
	sample = begin_event(head, ids, KERNEL_CALL_SIGNAL, number, &cpu);
	if (!sample)
		return 0;
	bpf_probe_read_kernel(sample->words, KERNEL_SIGINFO_SIZE, info);
	publish(head, cpu);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(see_end, const struct task_struct *task)
{
	struct call_ring_head *head = find_ring();
	uint64_t ids = bpf_get_current_pid_tgid();
	uint32_t cpu;

	if (!head || !is_wanted(ids))
		return 0;
	forget_noted(head, ids);
	if (begin_event(head, ids, KERNEL_CALL_END, (uint32_t)task->exit_code, &cpu))
		publish(head, cpu);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
