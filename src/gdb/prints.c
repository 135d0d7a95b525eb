/*
 * Positions are read in their order, up to the `head` that is loaded first. A slot that a thread owns has no record
 * yet: its position is kept as a late one, and looked at first the next time. So two texts of one thread, and of two
 * threads that have waited for each other, come in their order: the later slot is taken after the earlier record is
 * complete. If that was seen as not complete, the later one has a position at or behind `head`.
 *
 * What was read becomes free for the next lap. Where a thread has skipped it, it becomes free at a position that is
 * more than a lap ahead of `head`.
 */
#include "gdb/prints.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gdb/agent_form.h"
#include "gdb/agent_print.h"
#include "wire/prints.h"

enum {
	LAPS_MAX = 4, /* that `head` can be in front, if the process does not lie */
};

/* What a number means. */
struct meaning {
	uint64_t address;
	char *format;
	size_t size, n;
	uint32_t strings;
};

struct gdb_prints {
	struct kymo_wire_prints *memory;
	uint32_t n_slots, slot_size;
	uint64_t tail, n_lost;
	KYMO_VEC(uint64_t) late;
	KYMO_VEC(struct meaning) meanings;
};

/* A record, which the process cannot change any more. */
struct record {
	const struct meaning *meaning;
	union {
		struct kymo_wire_print head;
		uint8_t bytes[KYMO_WIRE_PRINT_SIZE_MAX];
	};
};

static struct kymo_wire_print *slot_of(const struct gdb_prints *prints, uint64_t position)
{
	const uint64_t i = position & (prints->n_slots - 1);

	return (struct kymo_wire_print *)(void *)((uint8_t *)prints->memory + KYMO_WIRE_PRINTS_SLOTS +
						  i * prints->slot_size);
}

static uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

struct gdb_prints *gdb_prints_make(struct kymo_wire_prints *memory, uint32_t n_slots, uint32_t slot_size)
{
	struct gdb_prints *prints = calloc(1, sizeof(*prints));

	if (!prints)
		return NULL;
	prints->memory = memory;
	prints->n_slots = n_slots;
	prints->slot_size = slot_size;
	for (uint64_t i = 0; i < n_slots; i++)
		slot_of(prints, i)->state = i;
	return prints;
}

bool gdb_prints_add(struct gdb_prints *prints, uint64_t address, const struct gdb_print *print)
{
	struct meaning meaning = { .address = address,
				   .format = malloc(print->format_size + 1),
				   .size = print->format_size,
				   .n = print->n,
				   .strings = print->strings };

	if (!meaning.format)
		return false;
	memcpy(meaning.format, print->format, print->format_size);
	if (kymo_vec_push(&prints->meanings, meaning))
		return true;
	free(meaning.format);
	return false;
}

void gdb_prints_destroy(struct gdb_prints *prints)
{
	if (!prints)
		return;
	for (size_t i = 0; i < prints->meanings.n; i++)
		free(prints->meanings.items[i].format);
	kymo_vec_deinit(&prints->meanings);
	kymo_vec_deinit(&prints->late);
	free(prints);
}

/* ---- a record -------------------------------------------------------------------------------- */

/* The bytes of a string in the record, from an address in the process. */
static bool read_text(void *data, uint64_t address, void *ret, size_t size)
{
	const struct record *record = data;
	const uint8_t *text = record->bytes + sizeof(record->head) + 8 * record->meaning->n;

	for (size_t i = 0; i < record->meaning->n; i++) {
		const uint64_t at = address - record->head.args[i];
		const uint8_t *end;
		size_t n;

		if (!(record->meaning->strings >> i & 1))
			continue;
		end = memchr(text, 0, KYMO_WIRE_PRINT_TEXT);
		n = end ? (size_t)(end - text) + 1 : 0;
		if (at < n) {
			memset(ret, 0, size);
			memcpy(ret, text + at, size < n - at ? size : (size_t)(n - at));
			return true;
		}
		text += KYMO_WIRE_PRINT_TEXT;
	}
	return false;
}

static void print_record(const struct gdb_prints *prints, const struct kymo_wire_print *slot, struct gdb_text *out)
{
	struct record record;
	const struct gdb_agent_target memory = { .read_memory = read_text, .data = &record };

	memcpy(record.bytes, slot, prints->slot_size);
	if (record.head.number >= prints->meanings.n)
		return;
	record.meaning = &prints->meanings.items[record.head.number];
	if (!gdb_agent_print(record.meaning->format, record.meaning->size, record.head.args, record.meaning->n, &memory,
			     out))
		gdb_text_format(out, "(fault) of a command at 0x%" PRIx64 "\n", record.meaning->address);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void make_free(const struct gdb_prints *prints, uint64_t position, uint64_t state)
{
	const uint64_t n = prints->n_slots, ahead = load(&prints->memory->head) - position;

	__atomic_store_n(&slot_of(prints, position)->state,
			 position + (state & KYMO_WIRE_PRINT_SKIPPED ? (ahead / n + 2) * n : n), __ATOMIC_RELEASE);
}

static bool is_record(uint64_t state, uint64_t position)
{
	return (state & ~KYMO_WIRE_PRINT_SKIPPED) == position + 1;
}

static bool is_owned(uint64_t state, uint64_t position)
{
	return (state & ~KYMO_WIRE_PRINT_SKIPPED) == position;
}

/* True: it has come. */
static bool take_late(struct gdb_prints *prints, uint64_t position, struct gdb_text *out)
{
	struct kymo_wire_print *slot = slot_of(prints, position);
	const uint64_t state = load(&slot->state);

	if (!is_record(state, position))
		return !is_owned(state, position); /* of a process that lies */
	print_record(prints, slot, out);
	make_free(prints, position, state);
	return true;
}

static void take_all_late(struct gdb_prints *prints, struct gdb_text *out)
{
	size_t kept = 0;

	for (size_t i = 0; i < prints->late.n; i++)
		if (!take_late(prints, prints->late.items[i], out))
			prints->late.items[kept++] = prints->late.items[i];
	prints->late.n = kept;
}

static void take_next(struct gdb_prints *prints, struct gdb_text *out)
{
	const uint64_t position = prints->tail++;
	struct kymo_wire_print *slot = slot_of(prints, position);
	const uint64_t state = load(&slot->state);

	if (is_owned(state, position)) {
		kymo_vec_push(&prints->late, position); /* without memory for that, the slot is never free again */
	} else if (is_record(state, position)) {
		print_record(prints, slot, out);
		make_free(prints, position, state);
	}
}

static bool take_some(struct gdb_prints *prints, size_t most, struct gdb_printed *printed)
{
	const uint64_t head = load(&prints->memory->head), n_lost = load(&prints->memory->n_lost);

	printed->n_lost += n_lost - prints->n_lost;
	prints->n_lost = n_lost;
	take_all_late(prints, &printed->text);
	if (head - prints->tail > (uint64_t)LAPS_MAX * prints->n_slots)
		prints->tail = head; /* of a process that lies */
	while (prints->tail != head && printed->text.n < most)
		take_next(prints, &printed->text);
	return prints->tail != head;
}

bool gdb_prints_collect(struct kymo_gdb *gdb, size_t most)
{
	bool is_more = false;

	for (size_t i = 0; i < gdb->prints.n; i++)
		is_more |= take_some(gdb->prints.items[i], most, &gdb->printed);
	return is_more;
}

bool gdb_prints_begin(struct kymo_gdb *gdb, struct gdb_prints *prints)
{
	return kymo_vec_push(&gdb->prints, prints);
}

void gdb_prints_end(struct kymo_gdb *gdb, const struct gdb_prints *prints)
{
	for (size_t i = 0; i < gdb->prints.n; i++) {
		struct gdb_prints *item = gdb->prints.items[i];

		if (item != prints)
			continue;
		if (take_some(item, GDB_PRINTED_MAX, &gdb->printed))
			gdb->printed.n_lost += load(&item->memory->head) - item->tail;
		gdb->prints.items[i] = gdb->prints.items[--gdb->prints.n];
		return;
	}
}
