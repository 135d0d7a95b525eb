/* What stands before a clone. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_CLONE_GATE_H
#define KYMO_ARCH_X86_64_CLONE_GATE_H

#include <stdbool.h>
#include <stdint.h>

struct code;
struct kymo_clone_env;

#define X86_GATE_SIZE_MAX 72u /* with the jump after it */

/* Go on at `copy` where the thread's word points into the arena, and make it do that otherwise: then, or with
 * `keeps_flags` always, the code after this goes on. Without `keeps_flags` the flags are changed. */
void x86_clone_emit_gate(struct code *c, const struct kymo_clone_env *env, bool keeps_flags, uint64_t copy);

#endif
