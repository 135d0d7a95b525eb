/*
 * The producers' half of the ring of samples (call_ring.h), for programs at tracepoints, which run with preemption off.
 * From take_room() to publish() no way leads out of a program.
 *
 * Private to the room.
 */
#ifndef KYMO_KERNEL_CALL_RING_BPF_H
#define KYMO_KERNEL_CALL_RING_BPF_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "kernel/call_layout.h"

#define ONCE(object) (*(volatile typeof(object) *)&(object))

const volatile struct kernel_call_options options SEC(".rodata.options");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct call_ring_head);
} ring SEC(".maps");

static __always_inline struct call_ring_head *find_ring(void)
{
	return bpf_map_lookup_elem(&ring, &(uint32_t){ 0 });
}

static __always_inline struct call_ring_line *line_of(struct call_ring_head *head, uint32_t cpu)
{
	return (void *)((uint8_t *)head + CALL_RING_LINES +
			(cpu & (options.n_lines - 1)) * sizeof(struct call_ring_line));
}

static __always_inline bool is_writing_below(struct call_ring_head *head, uint64_t position)
{
	for (uint32_t i = 0; i < options.n_lines; i++)
		if (ONCE(line_of(head, i)->begun) < position)
			return true;
	return false;
}

/* The oldest section goes. */
static __always_inline bool drop_section(struct call_ring_head *head, uint64_t tail)
{
	uint64_t section = (tail >> options.section_shift) + 1;
	uint64_t first = ONCE(head->firsts[section % CALL_RING_SECTIONS]);

	if (first >> options.section_shift != section || is_writing_below(head, first))
		return false;
	__sync_val_compare_and_swap(&head->tail, tail, first);
	return true;
}

/* Room for a record; publish() must follow. */
static __always_inline struct kernel_call *take_room(struct call_ring_head *head, uint32_t cpu, uint64_t size)
{
	struct call_ring_line *line = line_of(head, cpu);
	uint64_t tail, position;

	if (ONCE(line->begun) != CALL_RING_IDLE)
		goto none;
	tail = ONCE(head->tail); /* first: it must not be past that head */
	position = ONCE(head->head);
	for (int i = 0; options.overwrite && i < 2 && position - tail > options.capacity; i++) {
		if (!drop_section(head, tail)) /* the first may be all but read */
			goto none;
		tail = ONCE(head->tail);
		position = ONCE(head->head);
	}
	if (position - tail > options.capacity)
		goto none;
	ONCE(line->begun) = position;
	position = __sync_fetch_and_add(&head->head, size);
	if (options.overwrite) {
		uint64_t next = position + size, section = next >> options.section_shift;

		if (section != position >> options.section_shift)
			ONCE(head->firsts[section % CALL_RING_SECTIONS]) = next;
	}
	return (void *)((uint8_t *)head + CALL_RING_BYTES(options.n_lines) + (position & (options.size - 8)));
none:
	__sync_fetch_and_add(&head->lost, 1);
	return NULL;
}

static __always_inline void publish(struct call_ring_head *head, uint32_t cpu)
{
	barrier();
	ONCE(line_of(head, cpu)->begun) = CALL_RING_IDLE;
}

#endif
