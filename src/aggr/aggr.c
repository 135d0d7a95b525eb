#include "aggr/aggr.h"

#include <stdlib.h>

static const char *const names[] = {
	[KYMO_AGGR_COUNT] = "count", [KYMO_AGGR_SUM] = "sum", [KYMO_AGGR_MIN] = "min",
	[KYMO_AGGR_MAX] = "max",     [KYMO_AGGR_AVG] = "avg", [KYMO_AGGR_HIST] = "hist",
	[KYMO_AGGR_LHIST] = "lhist", [KYMO_AGGR_TOP] = "top", [KYMO_AGGR_UNTIL] = "until",
};

const char *kymo_aggr_kind_name(enum kymo_aggr_kind kind)
{
	return names[kind];
}

static void deinit_word(struct kymo_aggr_word *word)
{
	free(word->text);
	kymo_naming_release(word->naming);
}

void kymo_aggr_deinit(struct kymo_aggr *aggr)
{
	for (size_t i = 0; i < KYMO_AGGR_KEYS_MAX; i++)
		deinit_word(&aggr->keys[i]);
	deinit_word(&aggr->value);
	free(aggr->probe);
	*aggr = (struct kymo_aggr){ .n_keys = 0 };
}
