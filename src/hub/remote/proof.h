/* What proves that a client may trace a process. docs/internals/engines.md, "What a client has to prove". */
#ifndef KYMO_HUB_REMOTE_PROOF_H
#define KYMO_HUB_REMOTE_PROOF_H

#include <stdbool.h>
#include <sys/types.h>

struct hub_process;

/*
 * At the client: a descriptor of the memory of thread `tid`, open for reading and writing, for the hub whose thread
 * is `hub`. It is power over that memory, so the hub has to have that already: it traces the process, or, where
 * `may_be_untraced`, it has the client's user and namespace and all of the client's capabilities. A negative errno;
 * -EPERM also where the hub has not.
 */
int hub_proof_open(pid_t tid, pid_t hub, bool may_be_untraced);

/*
 * At the hub: whether `fd` is such a descriptor, of the memory that `tid` has now. `memory` is the hub's own
 * descriptor, through which the client will read and write, or -1. 0; -EPERM; -ESRCH: `tid` has none; -EAGAIN:
 * `memory` is not that of today, as an exec was not told yet.
 */
int hub_proof_check(int fd, pid_t tid, int memory);

/*
 * The same with the memory that the process has at the hub. With the lock. From then on a client can reach that
 * alone, until hub_report_to_guests().
 */
int hub_proof_check_guest(int fd, struct hub_process *process, pid_t tid);

#endif
