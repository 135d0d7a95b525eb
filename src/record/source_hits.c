#include "record/source_hits.h"

#include <stdlib.h>

#include "record/aggregate.h"
#include "record/kept_calls.h"

struct kymo_error *source_hits_make(const struct recording *recording, struct record_source *source)
{
	struct source_hits *hits;

	if (source->hits)
		return source->hits->n_calls ? NULL : &kymo_error_no_memory; /* it failed before */
	hits = calloc(1, sizeof(*hits));
	source->hits = hits;
	if (!hits)
		return &kymo_error_no_memory;
	hits->calls = calloc(recording->output.aggregating->n, sizeof(*hits->calls));
	hits->known = calloc(source->n_rings + 1, sizeof(*hits->known));
	hits->lost = calloc(source->n_rings + 1, sizeof(*hits->lost));
	hits->noted = calloc(source->n_rings + 1, sizeof(*hits->noted));
	hits->n_rings = source->n_rings;
	hits->kept = calloc(source->n_rings + 1, sizeof(*hits->kept));
	if (!hits->calls || !hits->known || !hits->lost || !hits->noted || !hits->kept)
		return &kymo_error_no_memory;
	hits->n_calls = recording->output.aggregating->n;
	return NULL;
}

void source_hits_forget(struct recording *recording, struct record_source *source)
{
	struct source_hits *hits = source->hits;

	if (!hits)
		return;
	for (size_t i = 0; i < hits->n_calls; i++)
		kymo_open_calls_deinit(&hits->calls[i]);
	free(hits->calls);
	free(hits->known);
	free(hits->lost);
	free(hits->noted);
	kept_calls_forget(recording, source);
	free(hits);
	source->hits = NULL;
}
