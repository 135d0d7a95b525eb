#include "record/sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "wire/event.h"

#define PLACES_MAX (1u << 20)
#define RECORDS_MAX (1u << 20) /* in a trace */
#define BYTES_MAX (64u << 20)  /* likewise: names of hostile files are long */
#define PACKET_SIZE (1u << 20) /* about */
#define TEXT_MAX 4096          /* bytes of a name: those of a hostile file have no end */

/* ---- places ---------------------------------------------------------------------------------- */

static uint64_t hash_place(const struct source_place *place)
{
	return kymo_hash_number(kymo_hash_number(KYMO_HASH_FIRST, place->address), place->origin);
}

uint32_t sources_place(struct sources *sources, uint32_t origin, uint64_t address)
{
	const struct source_place place = { .address = address, .origin = origin, .is_named = true };
	const uint64_t hash = hash_place(&place);
	struct source_place *items = sources->places.items;
	uint32_t at;

	if (!sources->event || !origin)
		return 0;
	at = kymo_index_find(&sources->index, hash, i,
			     items[i - 1].address == address && items[i - 1].origin == origin);
	if (at) {
		items[at - 1].is_named = true;
		return at;
	}
	if (sources->places.n == PLACES_MAX ||
	    !kymo_index_reserve(&sources->index, sources->places.n, i, hash_place(&items[i - 1])) ||
	    !kymo_vec_push(&sources->places, place)) {
		sources->n_without++;
		return 0;
	}
	kymo_index_put(&sources->index, hash, sources->places.n);
	return (uint32_t)sources->places.n;
}

void sources_forget_named(struct sources *sources)
{
	for (size_t i = 0; i < sources->places.n; i++)
		sources->places.items[i].is_named = false;
}

void sources_deinit(struct sources *sources)
{
	kymo_vec_deinit(&sources->places);
	kymo_index_deinit(&sources->index);
}

/* ---- records --------------------------------------------------------------------------------- */

/* Not the clock's time: on a busy machine debug information is read for as long as on another. */
static uint64_t thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void write_text(FILE *out, const char *text)
{
	fwrite(text ? text : "", 1, text ? strnlen(text, TEXT_MAX) : 0, out);
	putc('\0', out);
}

static void write_source(FILE *out, const struct sources *sources, uint32_t place,
			 const struct kymo_source_frame *frame)
{
	const int32_t nobody = 0;
	const uint8_t is_inlined = frame->is_inlined;
	const uint32_t line = frame->line;

	fwrite(&sources->header, sizeof(sources->header), 1, out);
	fwrite(&nobody, sizeof(nobody), 1, out);
	fwrite(&place, sizeof(place), 1, out);
	fwrite(&is_inlined, sizeof(is_inlined), 1, out);
	write_text(out, frame->function);
	write_text(out, frame->file);
	fwrite(&line, sizeof(line), 1, out);
}

static void write_place(FILE *out, struct sources *sources, size_t i)
{
	const struct source_place *place = &sources->places.items[i];
	struct kymo_source_frame frames[KYMO_SOURCE_FRAMES_MAX];
	const bool is_late = thread_ns() >= sources->end_ns;
	size_t n;

	sources->n_late += is_late;
	if (is_late)
		return;
	n = kymo_stacks_sources(sources->stacks, place->origin >> 1, place->address - (place->origin & 1), frames);
	if (n == 1 && !frames[0].file)
		return;
	if (sources->n_records + n > RECORDS_MAX || (uint64_t)ftell(out) + sources->n_bytes > BYTES_MAX) {
		sources->n_without++;
		return;
	}
	for (size_t k = 0; k < n; k++)
		write_source(out, sources, (uint32_t)i + 1, &frames[k]);
	sources->n_records += n;
}

void sources_begin(struct sources *sources, struct kymo_stacks *stacks, uint64_t tsc, uint64_t reading_ns)
{
	sources->stacks = stacks;
	sources->header = sources->event | tsc << KYMO_EVENT_ID_BITS;
	sources->end_ns = thread_ns() + reading_ns;
	sources->next = 0;
	sources->n_records = sources->n_late = sources->n_bytes = 0;
}

bool sources_next(struct sources *sources, char **bytes_ret, size_t *size_ret)
{
	FILE *out;

	*bytes_ret = NULL;
	if (sources->next == sources->places.n)
		return false;
	out = open_memstream(bytes_ret, size_ret);
	while (out && sources->next < sources->places.n && ftell(out) < (long)PACKET_SIZE) {
		if (sources->places.items[sources->next].is_named)
			write_place(out, sources, sources->next);
		sources->next++;
	}
	if (out)
		sources->n_bytes += (uint64_t)ftell(out);
	if (!out || fclose(out)) {
		free(*bytes_ret);
		*bytes_ret = NULL;
	}
	return true;
}
