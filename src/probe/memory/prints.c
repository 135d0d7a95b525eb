#include "probe/memory/prints.h"

#include <unistd.h>

#include "base/page.h"
#include "probe/memory/state.h"
#include "probe/options.h"
#include "probe/probes.h"
#include "wire/prints.h"

enum { SUBBUFFERS = 8 }; /* of a ring */

#define SIZE_LEAST ((1ull << 20) + KYMO_WIRE_PRINTS_SLOTS)

uint64_t kymo_prints_buffer(void)
{
	const long n = sysconf(_SC_NPROCESSORS_CONF);
	const uint64_t n_cpus = n > 0 ? (uint64_t)n : 1;

	return SUBBUFFERS * kymo_page_up((SIZE_LEAST + n_cpus * SUBBUFFERS - 1) / (n_cpus * SUBBUFFERS));
}

struct kymo_probes_prints kymo_prints(const struct kymo_probes *probes)
{
	const struct kymo_shared_ring ring = kymo_probes_ring(probes, 0);
	const uint64_t size = probes->shared.n_cpus * ring.subbuffer_size * ring.n_subbuffers;
	const uint32_t slot_size = probes->wanted.options.traps->slot_size;

	return (struct kymo_probes_prints){
		.address =
			probes->shared.data_address + (uint64_t)(ring.data - (const uint8_t *)probes->shared.data.head),
		.memory = (struct kymo_wire_prints *)(void *)ring.data,
		.n_slots = kymo_wire_prints_slots(size, slot_size),
		.slot_size = slot_size,
	};
}
