#include "record/packet_copy.h"

#include <stdlib.h>
#include <string.h>

#include "ring/ring.h"
#include "trace/trace.h"
#include "wire/event.h"

struct kymo_error *packet_copy_take(struct packet_copy *copy, const struct kymo_trace *output,
				    struct kymo_ring_packet *packet, kymo_packed_take *take, void *data)
{
	const uint64_t most = kymo_packed_plain_max(packet->size);

	if (copy->size < most) {
		free(copy->records);
		copy->records = malloc(most);
		copy->size = copy->records ? most : 0;
		if (!copy->records)
			return &kymo_error_no_memory;
	}
	packet->size = kymo_packed_to_plain(output, packet->records, packet->size, packet->tsc_begin, take, data,
					    copy->records);
	packet->records = copy->records;
	packet->is_plain = true;
	return NULL;
}

void packet_copy_deinit(struct packet_copy *copy)
{
	free(copy->records);
	*copy = (struct packet_copy){ .records = NULL };
}

const struct kymo_ctf_event *packet_event(const struct kymo_trace *output, const uint8_t *record)
{
	uint64_t header;

	memcpy(&header, record, sizeof(header));
	return kymo_trace_event(output, (uint32_t)(header & KYMO_EVENT_ID_MAX));
}
