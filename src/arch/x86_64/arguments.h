/* Arguments of records. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_ARGUMENTS_H
#define KYMO_ARCH_X86_64_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

struct code;
struct kymo_fetch;
struct kymo_pad_env;
struct kymo_pad_event;
struct label;
struct x86_pad_site;

/* Whether an argument is one that can be fetched. */
bool x86_fetch_is_valid(const struct kymo_fetch *fetch);

/* The payload, of an event that has one; else NULL. */
const struct kymo_fetch *x86_payload(const struct kymo_pad_event *event);

/* The copy of the stack, of an event that has one; else NULL. Its size is at BELOW_COPY_SIZE once all is composed. */
const struct kymo_fetch *x86_copy(const struct kymo_pad_event *event);

/* Bytes of the header of its records. */
uint32_t x86_header_size(const struct kymo_pad_event *event);

/* Store the arguments of a record at r10 + r11; rax and rdx are free, what they held is in the frame. */
void x86_store_arguments(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
			 const struct x86_pad_site *site);

/* What a register of the program's, a word, a form … has, as one argument: the register with the value, or a jump to
 * `fault`. rax and rdx are changed, and what is below the frame; of a composed event r10 and r11, too. */
unsigned int x86_load_argument(struct code *c, const struct kymo_pad_env *env, const struct x86_pad_site *site,
			       const struct kymo_fetch *fetch, struct label *fault);

/* Store the payload of a record at r10 + r11, or its composed arguments; r11 is behind them then. rax and rdx are
 * changed. */
void x86_store_payload(struct code *c, const struct kymo_pad_event *event);

#endif
