/* Memory that an event reads. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_READS_H
#define KYMO_ARCH_X86_64_READS_H

#include <stdbool.h>
#include <stdint.h>

struct code;
struct kymo_fetch;
struct kymo_pad_env;
struct kymo_pad_event;
struct label;

/* Whether arguments are composed below the frame before the record is begun: because they read memory, which takes a
 * system call. */
bool x86_is_composed(const struct kymo_pad_event *event);

/* Where that begins, from the frame. */
int32_t x86_composed_at(const struct kymo_pad_event *event);

/*
 * Around an event that reads memory: the stack pointer goes below all that the event keeps there. To `no_room`, with
 * the stack pointer as it was, where the initial thread's stack would not have it.
 */
void x86_begin_reads(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
		     struct label *no_room);
void x86_end_reads(struct code *c);

/* What the kernel has answered, from the frame, of an event that asks it: KYMO_FORM_NAME_SIZE bytes, and a struct
 * timespec. It lies at the stack pointer, below all else. */
int32_t x86_name_at(const struct code *c);
int32_t x86_clock_at(const struct code *c);

/* How far that is, for code of the event that is made elsewhere. 0: it reads nothing. */
int32_t x86_reads_lowered(const struct kymo_pad_event *event);

/* The most bytes of a string, or how many bytes. */
uint32_t x86_limit_of(const struct kymo_fetch *fetch);

/* r11 = the live page, which says how the shared code is to read. */
void x86_load_live_page(struct code *c, const struct kymo_pad_env *env);

/* Call what reads (guest_read.c): `size` bytes at rax to r10; r11 is the live page. All four free registers are
 * changed.
 */
void x86_call_reader(struct code *c, const struct kymo_pad_env *env, uint32_t entry, uint32_t size);

/* The same of as many as rdx says. */
void x86_call_reader_sized(struct code *c, const struct kymo_pad_env *env, uint32_t entry);

/* rax = the `size` bytes at rax, whatever is there, with zeros before them; or a jump to `fault`. All four free
 * registers are changed. The event is one that reads memory. */
void x86_emit_load(struct code *c, const struct kymo_pad_env *env, unsigned int size, struct label *fault);

/* Memory at the address in the slot `address` gets the low `size` bytes of rax, which stays; or a jump to `fault`. The
 * other free registers are changed. The event is one that reads memory. */
void x86_emit_store(struct code *c, const struct kymo_pad_env *env, unsigned int size, int32_t address,
		    struct label *fault);

#endif
