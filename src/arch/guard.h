/*
 * Guards: pads on the system calls that change how threads may use rings.
 *
 * Restartable sequences are safe in threads that are registered with the kernel. A new thread of glibc is not
 * registered at first, but may show the cpu_id of a dead thread; and a vfork child keeps its parent's. Guards sit on
 * the system calls by which glibc makes threads and processes (clone, clone3, vfork): they mark a new thread's cpu_id
 * as unregistered, as a later glibc does itself. They also list threads that wait for a child which has their control
 * block.
 *
 * One more guard sits on prctl: strict seccomp and PR_TSC_SIGSEGV make rdtsc fault. So the guard clears all live pages
 * before that, and the header says so. Where a recording has no such guard in the text, the pad of a site at prctl's
 * entry does the same (struct kymo_pad_chain).
 *
 * Public header of the room, beside pad.h.
 */
#ifndef KYMO_ARCH_GUARD_H
#define KYMO_ARCH_GUARD_H

#include "arch/pad.h"

/*
 * Find those calls in a module: their plans (each `mov $number,%eax; syscall`, displaced together) go to `ret`. Returns
 * their number, or -EPERM if one of them cannot be guarded, -ENOSPC.
 */
int kymo_guard_find(const struct kymo_module_code *code, const struct kymo_entry_map *map, struct kymo_plan *ret,
		    size_t max);

/* Whether a plan of kymo_guard_find() is that of a prctl. */
bool kymo_guard_mutes(const struct kymo_plan *plan);

/* Write the pad of a guard; as kymo_pad_emit(). A guard has a single entry. */
int kymo_guard_emit(const struct kymo_pad_env *env, const struct kymo_plan *plan, uint64_t site, uint64_t pad,
		    uint8_t *out, size_t size, struct kymo_pad_layout *ret);

#endif
