/*
 * The start stub: code that tells a tracer, by one stop, that glibc's dynamic linker has mapped a program's files
 * (docs/internals/following.md, "The start stub"). It lies in the zeros after the linker's text, and a jump leads to it
 * from where the linker makes set_tid_address(2). It makes that call, and sends the thread a signal that is ignored by
 * default. Without a tracer nothing comes of that.
 *
 * Public header of the room, beside code.h. Pure.
 */
#ifndef KYMO_ARCH_START_STUB_H
#define KYMO_ARCH_START_STUB_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#define KYMO_START_MACHINE EM_X86_64 /* of the linker */
#define KYMO_START_STUB 64           /* bytes */
#define KYMO_START_ALIGNMENT 16
#define KYMO_START_JUMP 5
#define KYMO_START_CALL 7 /* what the jump begins, and the stub has: the number of the call, and the call */

/* What has to be around the call: from KYMO_START_BEFORE bytes before it on. */
#define KYMO_START_BEFORE 7
#define KYMO_START_CODE 21

/*
 * Whether this is `pd->tid = set_tid_address(&pd->tid)`: an address is loaded as the argument, the call is made, and
 * the result is stored at that address, by the same register and distance. That no instruction begins elsewhere follows
 * from that.
 */
bool kymo_start_is_site(const uint8_t code[KYMO_START_CODE]);

/* Where in the text the call is, if there is one alone: its offset. -ENOENT, -EEXIST. */
int64_t kymo_start_find_site(const uint8_t *text, size_t size);

/* The stub at `stub` for the call at `site`, and the jump to it. -ERANGE: it is too far. */
int kymo_start_make_stub(uint64_t stub, uint64_t site, uint8_t signal, uint8_t stub_ret[KYMO_START_STUB],
			 uint8_t jump_ret[KYMO_START_JUMP]);

/* Whether these bytes at `stub` are a stub: of which call, and what its jump is. */
bool kymo_start_is_stub(const uint8_t bytes[KYMO_START_STUB], uint64_t stub, uint64_t *site_ret,
			uint8_t jump_ret[KYMO_START_JUMP]);

/* The address at which a thread in the stub is stopped by the signal that it has sent to itself. */
uint64_t kymo_start_told_at(uint64_t stub);

/* What a thread in the stub has on its stack, at most. */
#define KYMO_START_WORDS 4

/*
 * Take a thread out of the stub, to the instruction of the linker that it would be at. `registers` are the thread's,
 * and become what the thread would have in them there. `stack` is what lies from its stack pointer on.
 * `has_called_ret`: the thread has made the call. -EINVAL: the thread is at no instruction of the stub.
 */
int kymo_start_leave_stub(uint64_t stub, uint64_t site, const uint64_t stack[KYMO_START_WORDS],
			  struct user_regs_struct *registers, bool *has_called_ret);

#endif
