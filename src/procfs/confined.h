/* Whether a security module (AppArmor, SELinux, Smack) confines a process. */
#ifndef KYMO_PROCFS_CONFINED_H
#define KYMO_PROCFS_CONFINED_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether a label that /proc/PID/attr/current has is that of an unconfined process: AppArmor's `unconfined`, SELinux's
 * type `unconfined_t`, or none. */
bool kymo_is_unconfined_label(const char *label);

/* Whether a module may refuse to the process what the kernel itself permits. True too where its label can't be read,
 * though there is one. */
bool kymo_is_confined(pid_t pid);

#endif
