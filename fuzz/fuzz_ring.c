/* A ring whose control block is hostile: whatever it says, the reader stays within the ring's data, and comes to an
 * end. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ring/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SUBBUFFER_SIZE 4096u
#define N 4u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *memory = aligned_alloc(64, KYMO_WIRE_RING_STRIDE + N * SUBBUFFER_SIZE);
	struct kymo_wire_ring *shared = (void *)memory;
	const uint8_t *records = memory + KYMO_WIRE_RING_STRIDE;
	struct kymo_ring_packet packet;
	struct kymo_ring ring;

	if (!memory || !size) {
		free(memory);
		return 0;
	}
	memset(memory, 0, KYMO_WIRE_RING_STRIDE + N * SUBBUFFER_SIZE);
	kymo_ring_init(&ring, shared, records, SUBBUFFER_SIZE, N, data[0] & 1);
	for (size_t at = 1; at < size; at += sizeof(*shared)) {
		memcpy(shared, data + at, size - at < sizeof(*shared) ? size - at : sizeof(*shared));
		if (data[0] & 2)
			kymo_ring_flush(&ring, at);
		else
			kymo_ring_finish(&ring, at);
		for (unsigned int i = 0; i < 2 * N && kymo_ring_peek(&ring, &packet); i++) {
			volatile uint8_t sum = 0;

			if (packet.size > SUBBUFFER_SIZE || packet.records < records ||
			    packet.records + packet.size > records + N * SUBBUFFER_SIZE)
				abort();
			for (uint64_t k = 0; k < packet.size; k++)
				sum = (uint8_t)(sum + packet.records[k]);
			kymo_ring_release(&ring);
		}
	}
	free(memory);
	return 0;
}
