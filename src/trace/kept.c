/*
 * Packets lie one after another, each with its description before its records.
 *
 *	0                first          behind        end      size
 *	|    free        |  packets ... |    free              |        not wrapped: `end` is not used
 *
 *	0        behind            first            end        size
 *	| newest |       free      | oldest packets |  unused  |        wrapped
 *
 * A packet is never divided: if the rest of the memory is too small, the circle begins again at 0, and `end` says where
 * the packets before that are over.
 */
#include "trace/kept.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGNMENT 16u

struct kymo_kept {
	uint8_t *room;
	uint64_t size;
	uint64_t first, behind, end;
	bool is_wrapped;
	size_t n;
};

struct kymo_error *kymo_kept_create(uint64_t size, struct kymo_kept **ret)
{
	struct kymo_kept *kept = calloc(1, sizeof(*kept));

	if (!kept)
		return &kymo_error_no_memory;
	kept->size = size / ALIGNMENT * ALIGNMENT;
	kept->room = mmap(NULL, kept->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (kept->room == MAP_FAILED) {
		free(kept);
		return &kymo_error_no_memory;
	}
	*ret = kept;
	return NULL;
}

void kymo_kept_destroy(struct kymo_kept *kept)
{
	if (!kept)
		return;
	munmap(kept->room, kept->size);
	free(kept);
}

/* Bytes of a packet with `size` bytes of records. */
static uint64_t whole_size(uint64_t size)
{
	return (sizeof(struct kymo_kept_packet) + size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void drop_first(struct kymo_kept *kept)
{
	const struct kymo_kept_packet *packet = kymo_kept_first(kept);

	kept->first += whole_size(packet->size);
	kept->n--;
	if (kept->is_wrapped && kept->first == kept->end) {
		kept->first = 0;
		kept->is_wrapped = false;
	}
	if (!kept->n)
		kept->first = kept->behind = 0;
}

/* Whether `need` bytes are free after the newest packet; begins anew at 0 where the rest is too small. */
static bool is_free(struct kymo_kept *kept, uint64_t need)
{
	if (!kept->is_wrapped && kept->size - kept->behind < need) {
		kept->end = kept->behind;
		kept->behind = 0;
		kept->is_wrapped = true;
	}
	return (kept->is_wrapped ? kept->first : kept->size) - kept->behind >= need;
}

bool kymo_kept_push(struct kymo_kept *kept, const struct kymo_kept_packet *packet, const void *records,
		    void (*dropped)(const struct kymo_kept_packet *packet, void *data), void *data)
{
	uint64_t need;

	if (packet->size > kept->size || whole_size(packet->size) > kept->size)
		return false;
	need = whole_size(packet->size);
	while (!is_free(kept, need)) {
		dropped(kymo_kept_first(kept), data);
		drop_first(kept);
	}
	memcpy(kept->room + kept->behind, packet, sizeof(*packet));
	if (packet->size)
		memcpy(kept->room + kept->behind + sizeof(*packet), records, packet->size);
	kept->behind += need;
	kept->n++;
	return true;
}

const struct kymo_kept_packet *kymo_kept_first(const struct kymo_kept *kept)
{
	return kept->n ? (const struct kymo_kept_packet *)(kept->room + kept->first) : NULL;
}

const struct kymo_kept_packet *kymo_kept_next(const struct kymo_kept *kept, const struct kymo_kept_packet *packet)
{
	uint64_t at = (uint64_t)((const uint8_t *)packet - kept->room) + whole_size(packet->size);

	if (kept->is_wrapped && at == kept->end)
		at = 0;
	return at == kept->behind ? NULL : (const struct kymo_kept_packet *)(kept->room + at);
}

void *kymo_kept_records_writable(struct kymo_kept *kept, const struct kymo_kept_packet *packet)
{
	return kept->room + ((const uint8_t *)(packet + 1) - kept->room);
}

const void *kymo_kept_records(const struct kymo_kept_packet *packet)
{
	return packet + 1;
}
