/* What siginfo_t tells of a signal. */
#ifndef KYMO_SYSCALL_SIGINFO_H
#define KYMO_SYSCALL_SIGINFO_H

struct decode;
struct kymo_line;
struct kymo_syscall_target;

/* "{si_signo=SIGCHLD, si_code=CLD_EXITED, …}" of the kernel's siginfo_t, 128 bytes. */
void kymo_siginfo_text(const void *siginfo, const struct kymo_syscall_target *target, struct kymo_line *text);

/* The same, for decoders of this room. */
void put_siginfo(struct decode *d, const void *siginfo);

#endif
