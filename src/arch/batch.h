/*
 * Several remote calls of a thread, one after the other, between one stop and the next.
 *
 * The code is in memory of kymo's own that the target has mapped. It makes the calls of a table, which lies in the
 * scratch memory of the thread, and writes each result there. It ends at the first call that fails. Then the thread
 * sends itself a signal, which its tracer takes. With no tracer that signal does nothing: the caller chooses one that
 * is neither caught nor blocked, and is ignored by default. The thread then returns into its frame (arch/remote.h). The
 * thread is the first one of its process.
 *
 * Public header of the room. Pure.
 */
#ifndef KYMO_ARCH_BATCH_H
#define KYMO_ARCH_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#define KYMO_BATCH_MAX 12 /* calls */

/* A row of the table, as it lies in the target. */
struct kymo_batch_call {
	uint64_t number, args[6];
	int64_t result; /* written by the target */
};

/* The code, which runs at any address; at most KYMO_BATCH_CODE_MAX bytes. */
#define KYMO_BATCH_CODE_MAX 96
const uint8_t *kymo_batch_code(size_t *size_ret);

/* The thread's program counter when it has sent its signal, with the code at `at`. */
uint64_t kymo_batch_end(uint64_t at);

/*
 * The registers with which a thread makes the `n` calls (1 or more) of the table at `table`, by the code at `at`. Its
 * frame is at `sp`. Then it sends `signal` to itself. `registers` are its own.
 */
void kymo_batch_begin(const struct user_regs_struct *registers, uint64_t at, uint64_t sp, uint64_t table, size_t n,
		      int signal, struct user_regs_struct *ret);

/* Whether `code`, KYMO_REMOTE_CODE bytes from the program counter on, is of that code. */
bool kymo_batch_is_code(const uint8_t *code);

#endif
