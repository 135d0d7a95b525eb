#include "report/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/text.h"

#define PREFIX "thread_"

static bool parse_tid(const char *key, int32_t *ret)
{
	char *end;
	long tid;

	if (strncmp(key, PREFIX, strlen(PREFIX)))
		return false;
	key += strlen(PREFIX);
	errno = 0;
	tid = strtol(key, &end, 10);
	if (errno || end == key || *end || tid < 0 || tid > INT32_MAX)
		return false;
	*ret = (int32_t)tid;
	return true;
}

static int compare_tids(const void *a, const void *b)
{
	const struct thread_name *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

struct kymo_error *kymo_names_init(struct names *names, const struct kymo_ctf_trace *trace, bool unicode)
{
	*names = (struct names){ .items = calloc(trace->n_env + 1, sizeof(*names->items)) };
	if (!names->items)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < trace->n_env; i++) {
		struct thread_name *name = &names->items[names->n];

		if (!parse_tid(trace->env[i].key, &name->tid))
			continue;
		name->raw = trace->env[i].value;
		name->safe = kymo_text_escape(name->raw, unicode);
		if (!name->safe) {
			kymo_names_deinit(names);
			return &kymo_error_no_memory;
		}
		names->n++;
	}
	qsort(names->items, names->n, sizeof(*names->items), compare_tids);
	return NULL;
}

void kymo_names_deinit(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->items[i].safe);
	free(names->items);
	*names = (struct names){ 0 };
}

const struct thread_name *kymo_names_find(const struct names *names, int32_t tid)
{
	struct thread_name key = { .tid = tid };

	return bsearch(&key, names->items, names->n, sizeof(*names->items), compare_tids);
}
