/*
 * The functions that the symbols of a spec mean: those that begin there, and of an IFUNC those that its resolver may
 * choose. The same in a process and without one. Private to the room.
 */
#ifndef KYMO_PROBE_CODE_TARGETS_H
#define KYMO_PROBE_CODE_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "probe/code/indirect.h"
#include "probe/spec/spec.h"

struct kymo_symbol;

struct probe_target {
	uint64_t vaddr;      /* of the function, as linked */
	char *function;      /* its own name: "malloc"; of an IFUNC's as kymo_indirect_describe() has it */
	char *names;         /* of IFUNCs that the spec names and that may choose it: "memcpy,memmove"; or NULL */
	uint64_t resolver;   /* of the first of these IFUNCs; 0: none */
	bool is_one_of_many; /* chosen from several: most processes use one of them */
	char *refusal;       /* why no probe can be meant, or NULL */
};

struct probe_targets {
	KYMO_VEC(struct probe_target) list; /* by address, each once */
	char shared[200]; /* other IFUNCs that may choose some of them, "" where there are none: "memmove" */
};

/* Whether any of the symbols is an IFUNC: then targets are found by code. */
bool probe_has_indirect(const struct kymo_symbol *const *symbols, size_t n);

/*
 * Those of `symbols`, which kymo_module_find() has found for `spec`. `code` is the module's, or NULL where there are no
 * IFUNCs among them. What is named by a symbol of its own is not taken for one of an IFUNC's too.
 */
struct kymo_error *probe_targets_init(const struct kymo_spec *spec, struct kymo_module *module, struct kymo_code *code,
				      const struct kymo_symbol *const *symbols, size_t n, struct probe_targets *ret);
void probe_targets_deinit(struct probe_targets *targets);

/* "malloc+0x4", "memcpy=__memmove_avx_unaligned_erms": the location that `spec` means by a target. */
void probe_target_location(const struct kymo_spec *spec, const struct probe_target *target, char *out, size_t size);

#endif
