/* What a function is made of, and where it is left. Private to the room. */
#ifndef KYMO_PROBE_CODE_PARTS_H
#define KYMO_PROBE_CODE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/exits.h"
#include "base/error.h"

struct kymo_code;
struct kymo_module;

#define PROBE_EXITS_REASON_MAX 1600

/* The exits of a function; or why there are none that can be used. */
struct probe_exits {
	struct kymo_exit *items;
	size_t n;
	bool has_end; /* the file says where the function ends; else `reason` is a sentence of its own */
	char reason[PROBE_EXITS_REASON_MAX]; /* "": all exits can be used */
};

/*
 * The exits of the function at `vaddr`, called `name`, and of what the compiler split off from it ("name.cold").
 * `code` is the module's.
 */
struct kymo_error *probe_exits_init(struct kymo_module *module, const struct kymo_code *code, uint64_t vaddr,
				    const char *name, struct probe_exits *ret);
void probe_exits_deinit(struct probe_exits *exits);

#endif
