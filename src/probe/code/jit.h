/*
 * JIT code: what a program generates in memory of no file. A probe there is of one
 * process and one address; only the user's address and the program's own perf map (/tmp/perf-PID.map) tell where
 * instructions begin and what leads to them. So the planner displaces the one instruction, or refuses
 * (docs/internals/probing.md).
 */
#ifndef KYMO_PROBE_CODE_JIT_H
#define KYMO_PROBE_CODE_JIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "probe/code/code.h"

struct kymo_map;
struct kymo_maps;
struct kymo_process;

/* What stands for the file's path. */
#define KYMO_JIT_PATH "[anonymous]"

struct kymo_jit {
	uint64_t address;
	uint64_t low, high;     /* pages around it that are mapped alike */
	char *location;         /* "fib+0x12" by the perf map, which is not trusted; or "0x7f3c12345678" */
	bool is_named;          /* by the perf map: all from the start of the function to the address decodes */
	uint64_t start;         /* of that function; else the address */
	uint8_t *bytes;         /* as the program has written them: other recordings' jumps are taken back */
	struct kymo_code *code; /* vaddr is the address in the process */
};

/*
 * Look at the code at `address` of `process`, which may run. NOT_FOUND: nothing is mapped there; USAGE: it is a file's
 * (the sentence says what to write instead); UNSAFE: it can't be executed, or others than by mprotect() may change it,
 * or no instruction begins there as far as is known.
 */
struct kymo_error *kymo_jit_open(struct kymo_process *process, uint64_t address, struct kymo_jit **ret);

/* NULL is allowed. */
void kymo_jit_close(struct kymo_jit *jit);

/* Whether code at `address` may be changed now, as kymo_jit_open() would have it; the same errors. `written_ret`: what
 * stands against it is that the program may be writing there just now. */
struct kymo_error *kymo_jit_check(pid_t pid, const struct kymo_maps *maps, uint64_t address, bool *written_ret);

/* Whether `map` is private memory of no file and of no other use that the kernel knows. */
bool kymo_jit_is_map(const struct kymo_map *map);

#endif
