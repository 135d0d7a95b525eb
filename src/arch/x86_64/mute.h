/* What pads do before a call of prctl. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_MUTE_H
#define KYMO_ARCH_X86_64_MUTE_H

#include "arch/pad.h"
#include "arch/x86_64/code.h"

/*
 * With what is asked of prctl in edi and esi: after (PR_SET_SECCOMP, SECCOMP_MODE_STRICT) and (PR_SET_TSC,
 * PR_TSC_SIGSEGV) no pad of this recording may read the counter, and the data memory says so. Other filters of system
 * calls may be about to come: then no pad reads memory by a call. That is told by PR_SET_NO_NEW_PRIVS, too, which comes
 * before seccomp(2) where the process has no privilege, and in libseccomp always. The process is not a forked child,
 * which lacks the memory. Changes rax, r11, the flags, and `base`, which is RCX or R10.
 */
void x86_emit_mute(struct code *c, const struct kymo_pad_env *env, unsigned int base);

#endif
