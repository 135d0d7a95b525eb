/* What proves that a client may trace a process. docs/design/engines.md, "What a client has to prove". */
#ifndef KYMO_PROC_HUB_PROOF_H
#define KYMO_PROC_HUB_PROOF_H

#include <sys/types.h>

/* At the client: a descriptor of the memory of thread `tid`, open for reading and writing. A negative errno: the kernel does not allow it. */
int hub_proof_open(pid_t tid);

/* At the hub: whether `fd` is such a descriptor, of the memory that `tid` has now. 0; -EPERM; -ESRCH: it has none. */
int hub_proof_check(int fd, pid_t tid);

#endif
