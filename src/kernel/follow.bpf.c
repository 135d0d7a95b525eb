/*
 * Keep the table of recorded processes right while they fork and exit. follow.c loads this, with the recording's own
 * map for `processes`. Several CPUs may change a process at once: the number changes with the one that has changed the
 * bit.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "kernel/processes.h"

/* What is asked of the kernel's structures; libbpf fills in the offsets of the kernel that runs. */
struct signal_struct {
	struct {
		int counter;
	} live; /* threads that have not ended */
} __attribute__((preserve_access_index));

struct task_struct {
	int tgid;
	struct signal_struct *signal;
} __attribute__((preserve_access_index));

struct kernel_processes processes;

static __always_inline uint64_t *word_of(uint32_t pid)
{
	return &processes.bits[pid % KERNEL_PIDS / 64];
}

static __always_inline uint64_t bit_of(uint32_t pid)
{
	return 1ull << pid % 64;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(follow_fork, struct task_struct *parent, struct task_struct *child)
{
	uint64_t bit = bit_of(child->tgid);

	if (*word_of(parent->tgid) & bit_of(parent->tgid) && !(__sync_fetch_and_or(word_of(child->tgid), bit) & bit))
		__sync_fetch_and_add(&processes.n, 1);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(follow_exit, struct task_struct *task)
{
	uint64_t *word = word_of(task->tgid), bit = bit_of(task->tgid);

	if (*word & bit && !task->signal->live.counter && __sync_fetch_and_and(word, ~bit) & bit)
		__sync_fetch_and_add(&processes.n, -1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
