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

void kymo_aggr_deinit(struct kymo_aggr *aggr)
{
	for (size_t i = 0; i < KYMO_AGGR_KEYS_MAX; i++)
		free(aggr->keys[i].text);
	free(aggr->value.text);
	free(aggr->probe);
	*aggr = (struct kymo_aggr){ .n_keys = 0 };
}
