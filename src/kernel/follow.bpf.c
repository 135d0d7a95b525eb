/* What follows the processes of a recording of probes. follow.c loads this, with the recording's own map for
 * `processes`; one of system calls has it among its own programs. */
#include "kernel/follow.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
