/* Signals by name. */
#ifndef KYMO_SYSCALL_SIGNAL_NAMES_H
#define KYMO_SYSCALL_SIGNAL_NAMES_H

struct decode;

/* "SIGCHLD", "SIGRT_3"; "SIGNAL 99" in `buffer` for none. */
const char *kymo_signal_name(int signal, char buffer[32]);

/* The same, for decoders of this room. */
void put_signal(struct decode *d, int signal);

#endif
