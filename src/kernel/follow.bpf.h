/*
 * Keep the table of recorded processes right while they fork and exit. Several CPUs may change a process at once: the
 * number changes with the one that has changed the bit.
 *
 * The kernel counts the threads that live before it runs the tracepoint of an exit. So of two threads that end at once,
 * the last one may come to the tracepoint first. The other one is still to be seen: the process stays in the table. It
 * leaves it when its id is given to a new process. The kernel releases a thread after its tracepoint: where the last
 * one is the only one that is left, no other is still to be seen.
 *
 * Private to the room.
 */
#ifndef KYMO_KERNEL_FOLLOW_BPF_H
#define KYMO_KERNEL_FOLLOW_BPF_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "kernel/processes.h"

/* What is asked of the kernel's structures; libbpf fills in the offsets of the kernel that runs. */
struct thread_info {
	uint32_t status;
} __attribute__((preserve_access_index));

struct signal_struct {
	struct {
		int counter;
	} live;         /* threads that have not ended */
	int nr_threads; /* that are not released */
} __attribute__((preserve_access_index));

struct task_struct {
	struct thread_info thread_info;
	int pid, tgid, exit_code;
	struct signal_struct *signal;
} __attribute__((preserve_access_index));

struct kernel_processes processes SEC(".bss.processes");

static __always_inline uint64_t *word_of(uint64_t *bits, uint32_t pid)
{
	return &bits[pid % KERNEL_PIDS / 64];
}

static __always_inline uint64_t bit_of(uint32_t pid)
{
	return 1ull << pid % 64;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(follow_fork, struct task_struct *parent, struct task_struct *child)
{
	uint64_t *word = word_of(processes.bits, child->tgid), *ended = word_of(processes.ended, child->tgid);
	uint64_t bit = bit_of(child->tgid);

	if (child->pid != child->tgid)
		return 0;
	if (*ended & bit)
		__sync_fetch_and_and(ended, ~bit);
	if (*word_of(processes.bits, parent->tgid) & bit_of(parent->tgid)) {
		__sync_fetch_and_or(word, bit);
		__sync_fetch_and_add(&processes.n, 1);
	} else if (*word & bit) {
		__sync_fetch_and_and(word, ~bit);
	}
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(follow_exit, struct task_struct *task)
{
	uint64_t bit = bit_of(task->tgid);

	if (*word_of(processes.bits, task->tgid) & bit && !task->signal->live.counter &&
	    !(__sync_fetch_and_or(word_of(processes.ended, task->tgid), bit) & bit)) {
		if (task->signal->nr_threads > 1)
			processes.may_be_late = 1;
		__sync_fetch_and_add(&processes.n, -1); /* after that: the reader looks in the other order */
	}
	return 0;
}

#endif
