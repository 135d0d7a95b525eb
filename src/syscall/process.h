/* Processes and threads. Private to the room. */
#ifndef KYMO_SYSCALL_PROCESS_H
#define KYMO_SYSCALL_PROCESS_H

#include <stdint.h>

#include "syscall/decode.h"

void put_wait_status(struct decode *d, int status);
void put_rusage_at(struct decode *d, uint64_t address);

void result_scheduler(struct decode *d);
void result_membarrier(struct decode *d);

extern const struct kind k_argv[1], k_envp[1], k_clone_stack[1], k_clone_flags[1], k_clone_rest[1], k_clone3[1],
	k_clone3_out[1];
extern const struct kind k_unshare_flags[1], k_setns_type[1], k_wait_status[1], k_wait_options[1], k_id_type[1],
	k_wait_rusage[1];
extern const struct kind k_rusage_out[1], k_futex_op[1], k_futex_args[1], k_affinity_in[1], k_affinity_out[1],
	k_scheduler[1];
extern const struct kind k_priority_which[1], k_priority_who[1], k_wait_id[1], k_seccomp_op[1], k_seccomp_flags[1],
	k_seccomp_args[1], k_seccomp_sizes[1], k_membarrier[1], k_robust_out[1], k_robust_size_out[1];

#endif
