/* What descriptors of a process are of. */
#ifndef KYMO_PROCFS_DESCRIPTORS_H
#define KYMO_PROCFS_DESCRIPTORS_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether one of them is of `name`, as /proc/PID/fd has it: "anon_inode:[userfaultfd]". True, too, where they can't be
 * read. Any thread may ask. */
bool kymo_has_descriptor(pid_t pid, const char *name);

#endif
