/* What a pad with a trap does in its place where it prints. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_PRINT_H
#define KYMO_ARCH_X86_64_PRINT_H

#include <stdbool.h>
#include <stddef.h>

struct code;
struct kymo_pad_env;
struct kymo_pad_event;
struct kymo_pad_layout;
struct kymo_pad_print;
struct label;
struct x86_pad_site;

/* Whether code can be made of it. NULL is allowed. */
bool x86_print_is_valid(const struct kymo_pad_print *print);

/* Upper bound of the size of that code, without its forms; of NULL 0. */
size_t x86_print_size(const struct kymo_pad_print *print);

/* The record. The last instruction makes it count, and the way out comes next. A jump to `full` where there is no slot:
 * x86_print_full() binds that. A jump to `trap` where a text is too long, an argument has no value, or the slots are
 * much fought for. */
void x86_emit_print(struct code *c, const struct kymo_pad_env *env, const struct x86_pad_site *site,
		    const struct kymo_pad_event *event, struct label *full, struct label *trap,
		    struct kymo_pad_layout *layout);

/* Count the loss, and go to the way out. Behind everything else. */
void x86_print_full(struct code *c, struct label *full, struct kymo_pad_layout *layout);

#endif
