/*
 * Each sample has the newest branches of its moment. Samples overlap where less branches were taken than the processor
 * keeps. Where exactly one overlap is possible, the two are one history. Where several are, as in a loop, it is not
 * known how many branches lie between: the history begins with the later sample. Where none is, some are lost between.
 */
#include "branch/raw_lbr.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "base/vec.h"
#include "branch/raw.h"
#include "branch/raw_records.h"

#define ENTRIES_MAX 1024u /* of a sample; processors have 32 at most */

struct entry {
	uint64_t from, to;
	bool is_after_loss;
};

struct sample {
	const uint8_t *entries; /* struct perf_branch_entry, the newest first */
	size_t n;
};

struct entries {
	KYMO_VEC(struct entry) items;
};

static struct entry entry_of(const struct sample *sample, size_t i)
{
	struct perf_branch_entry entry;

	memcpy(&entry, sample->entries + (sample->n - 1 - i) * sizeof(entry), sizeof(entry));
	return (struct entry){ .from = entry.from, .to = entry.to };
}

static bool overlap(const struct entries *history, const struct sample *sample, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct entry *old = &history->items.items[history->items.n - n + i];
		const struct entry new = entry_of(sample, i);

		if (old->from != new.from || old->to != new.to)
			return false;
	}
	return true;
}

static bool join(struct entries *history, const struct sample *sample)
{
	const size_t most = history->items.n < sample->n ? history->items.n : sample->n;
	size_t n = 0, n_ways = 0;

	for (size_t k = 1; k <= most; k++) {
		if (!overlap(history, sample, k))
			continue;
		n = k;
		n_ways++;
	}
	if (n_ways > 1) {
		history->items.n = 0;
		n = 0;
	}
	for (size_t i = n; i < sample->n; i++) {
		struct entry entry = entry_of(sample, i);

		entry.is_after_loss = i == 0 && history->items.n;
		if (!kymo_vec_push(&history->items, entry))
			return false;
	}
	return true;
}

/* Samples have nothing but branches: PERF_SAMPLE_BRANCH_STACK. */
static bool sample_of(const uint8_t *record, size_t size, struct sample *ret)
{
	const size_t head = sizeof(struct perf_event_header);
	uint64_t n;

	if (size < head + sizeof(n))
		return false;
	memcpy(&n, record + head, sizeof(n));
	if (n > ENTRIES_MAX || n * sizeof(struct perf_branch_entry) > size - head - sizeof(n))
		return false;
	*ret = (struct sample){ record + head + sizeof(n), (size_t)n };
	return true;
}

int branch_lbr_decode(const struct branch_raw *raw)
{
	struct branch_raw_records records = { .raw = raw };
	KYMO_VEC(struct sample) samples = { 0 };
	struct entries history = { 0 };
	int err = 0;

	for (size_t at = 0; at + sizeof(struct perf_event_header) <= raw->size && !err;) {
		struct perf_event_header header;
		struct sample sample;

		memcpy(&header, raw->bytes + at, sizeof(header));
		if (header.size < sizeof(header) || header.size > raw->size - at)
			break; /* what was overwritten begins here */
		if (header.type == PERF_RECORD_SAMPLE && sample_of(raw->bytes + at, header.size, &sample) &&
		    !kymo_vec_push(&samples, sample))
			err = -ENOMEM;
		at += header.size;
	}
	for (size_t i = samples.n; i-- > 0 && !err;)
		if (!join(&history, &samples.items[i]))
			err = -ENOMEM;
	for (size_t i = 0; i < history.items.n && !err; i++)
		branch_raw_take(&records, history.items.items[i].from, history.items.items[i].to,
				history.items.items[i].is_after_loss);
	kymo_vec_deinit(&samples);
	kymo_vec_deinit(&history.items);
	return err;
}
