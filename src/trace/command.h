/* Command lines, as the trace has them. */
#ifndef KYMO_TRACE_COMMAND_H
#define KYMO_TRACE_COMMAND_H

#include <sys/types.h>

/* Arguments separated by spaces; long ones are cut. To be freed; NULL when memory is out. */
char *kymo_command_join(char *const *argv);

/* The same of a running process; "" where it can't be read. */
char *kymo_command_of(pid_t pid);

#endif
