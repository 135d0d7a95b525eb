/* Command lines, as the trace has them. Private to the room. */
#ifndef KYMO_RECORD_COMMAND_H
#define KYMO_RECORD_COMMAND_H

#include <sys/types.h>

/* Arguments separated by spaces; what is longer than anybody reads is cut. To be freed; NULL when memory is out. */
char *command_join(char *const *argv);

/* The same of a running process; "" where it can't be read. */
char *command_of(pid_t pid);

#endif
