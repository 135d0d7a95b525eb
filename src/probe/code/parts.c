#include "probe/code/parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/plan.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "probe/code/code.h"
#include "sym/functions.h"
#include "sym/module.h"
#include "sym/sym.h"

/* The function `own` itself, and then what was split off from it. A fresh array. */
static struct kymo_error *create_parts(struct kymo_module *module, const struct kymo_function *own, const char *name,
				       struct kymo_extent **ret, size_t *n_ret)
{
	const struct kymo_function *functions;
	KYMO_VEC(struct kymo_extent) parts = { 0 };
	struct kymo_error *error;
	size_t n;
	bool ok;

	error = kymo_module_functions(module, &functions, &n);
	if (error)
		return error;
	ok = kymo_vec_push(&parts, (struct kymo_extent){ own->start, own->end });
	for (size_t i = 0; i < n && ok; i++)
		if (kymo_function_is_part_of(&functions[i], name))
			ok = kymo_vec_push(&parts, (struct kymo_extent){ functions[i].start, functions[i].end });
	if (!ok) {
		kymo_vec_deinit(&parts);
		return &kymo_error_no_memory;
	}
	*ret = parts.items;
	*n_ret = parts.n;
	return NULL;
}

struct kymo_error *probe_exits_init(struct kymo_module *module, const struct kymo_code *code, uint64_t vaddr,
				    const char *name, struct probe_exits *ret)
{
	const struct kymo_function *own = kymo_module_function_at(module, vaddr);
	kymo_cleanup_free struct kymo_extent *parts = NULL;
	struct kymo_refusal refusal = { .vaddr = 0 };
	struct kymo_error *error;
	size_t n_parts;
	int err;

	*ret = (struct probe_exits){ .has_end = own != NULL };
	if (!own) {
		snprintf(ret->reason, sizeof(ret->reason), "%s does not say where its function %s ends",
			 kymo_module_path(module), name);
		return NULL;
	}
	error = create_parts(module, own, name, &parts, &n_parts);
	if (error)
		return error;
	err = kymo_exits_create(&code->code, code->map, parts, n_parts, &ret->items, &ret->n, &refusal);
	if (err == -ENOMEM)
		return &kymo_error_no_memory;
	if (err || !ret->n)
		snprintf(ret->reason, sizeof(ret->reason), "%s", err ? refusal.reason : "it never returns");
	return NULL;
}

void probe_exits_deinit(struct probe_exits *exits)
{
	free(exits->items);
	*exits = (struct probe_exits){ .n = 0 };
}
