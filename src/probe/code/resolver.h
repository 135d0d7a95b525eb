/*
 * What the words of a spec mean in one file: the functions, instructions and offsets that are looked for in a process
 * and in a file alone. The caller decides what to do with a location that was found. Private to the room.
 */
#ifndef KYMO_PROBE_CODE_RESOLVER_H
#define KYMO_PROBE_CODE_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "probe/code/events.h"

struct kymo_code;
struct kymo_module;
struct kymo_spec;

/* What a spec means in one file. */
struct probe_meaning {
	size_t spec, module; /* indexes: of the file among those of a process, or of those that are looked at alone */
	enum kymo_event_kind kind;
	bool is_exact; /* it names one location, which must not be left out */
};

/* How an instruction was found. */
enum probe_found {
	PROBE_FOUND_SYMBOL, /* a function begins there */
	PROBE_FOUND_OFFSET, /* the user says that one is there */
	PROBE_FOUND_SWEPT,  /* by decoding a function from its start */
};

/* What is done with what was found. `data` is the resolver's. */
struct probe_resolver_ops {
	/* The code of the file with this index, made if need be. */
	struct kymo_error *(*code)(void *data, size_t module, struct kymo_code **ret);
	void (*warn)(void *data, const char *sentence);
	/* No probe can be at a location. */
	struct kymo_error *(*refuse)(void *data, const struct probe_meaning *meaning, const char *location,
				     const char *reason);
	struct kymo_error *(*add)(void *data, const struct probe_meaning *meaning, uint64_t vaddr, const char *location,
				  enum probe_found found);
	/* The exits of the function at `vaddr`, which is called `function`. */
	struct kymo_error *(*add_return)(void *data, const struct probe_meaning *meaning, uint64_t vaddr,
					 const char *function, const char *location);
};

struct probe_resolver {
	const struct probe_resolver_ops *ops;
	void *data;
	const struct kymo_spec *spec; /* with a symbol, or an offset in the file */
	struct kymo_module *module;
};

/* NOT_FOUND: the file has nothing that the spec means. `met_ret` becomes true when it has something. */
struct kymo_error *probe_resolve(const struct probe_resolver *resolver, const struct probe_meaning *meaning,
				 bool *met_ret);

#endif
