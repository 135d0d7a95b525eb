/* gdb's numbers of signals, which are its own on every system. */
#ifndef KYMO_GDB_SIGNALS_H
#define KYMO_GDB_SIGNALS_H

#define GDB_SIGNAL_TRAP 5

int gdb_signal_of(int number); /* 143 where gdb has no name for it */
int gdb_signal_to(int signal); /* the kernel's number, or 0 */

#endif
