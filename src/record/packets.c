#include <sched.h>
#include <stdlib.h>

#include "arch/pad.h"
#include "record/recording.h"

/* A ring of sequences is closed from its own CPU. Where this process may not run there, the packet waits until it is full. */
static uint64_t close_on_cpu(struct kymo_wire_ring *shared, uint32_t cpu)
{
	cpu_set_t before, here;
	uint64_t stamp = 0;

	if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(before), &before))
		return 0;
	CPU_ZERO(&here);
	CPU_SET(cpu, &here);
	if (sched_setaffinity(0, sizeof(here), &here))
		return 0;
	if (kymo_pad_close_ring(shared, cpu))
		stamp = clock_tsc();
	sched_setaffinity(0, sizeof(before), &before);
	return stamp;
}

struct kymo_error *recording_open_rings(struct recording *recording)
{
	size_t n = kymo_probes_n_rings(recording->probes);

	if (recording->rings || !n)
		return NULL;
	recording->rings = calloc(n, sizeof(*recording->rings));
	recording->shared = calloc(n, sizeof(*recording->shared));
	if (!recording->rings || !recording->shared)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < n; i++) {
		struct kymo_shared_ring *ring = &recording->shared[i];

		*ring = kymo_probes_ring(recording->probes, i);
		kymo_ring_init(&recording->rings[i], ring->shared, ring->data, ring->subbuffer_size, ring->n_subbuffers,
			       recording->options->overwrite);
		if (ring->is_sequenced)
			recording->rings[i].close = close_on_cpu;
		recording->rings[i].cpu = ring->cpu;
	}
	recording->n_rings = n;
	return output_rings(&recording->output, n);
}

struct kymo_error *recording_drain(struct recording *recording, size_t *n_ret)
{
	*n_ret = 0;
	for (size_t i = 0; i < recording->n_rings; i++) {
		size_t n;
		struct kymo_error *error =
			output_drain(&recording->output, i, &recording->rings[i], recording->shared[i].cpu, &n);

		if (error)
			return error;
		*n_ret += n;
	}
	return NULL;
}

uint64_t recording_lost(const struct recording *recording)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < recording->n_rings; i++)
		lost += kymo_ring_lost(&recording->rings[i]);
	return lost;
}

struct kymo_error *recording_finish_rings(struct recording *recording)
{
	struct kymo_error *error;
	size_t n;

	for (size_t i = 0; i < recording->n_rings; i++)
		kymo_ring_finish(&recording->rings[i], clock_tsc());
	do {
		error = recording_drain(recording, &n);
	} while (!error && n);
	for (size_t i = 0; i < recording->n_rings && !error; i++)
		error = output_finish(&recording->output, i, &recording->rings[i], recording->shared[i].cpu, clock_tsc());
	return error;
}

void recording_flush(struct recording *recording)
{
	for (size_t i = 0; i < recording->n_rings; i++)
		kymo_ring_flush(&recording->rings[i], clock_tsc());
}
