/* Names of the options of sockets. Private to the room. */
#ifndef KYMO_SYSCALL_SOCKOPT_NAMES_H
#define KYMO_SYSCALL_SOCKOPT_NAMES_H

#include <stdbool.h>

struct names;

/* Names of the options of a level, as setsockopt has them or, `is_asked`, getsockopt; NULL for levels without names. */
const struct names *socket_option_names(int level, int option, bool is_asked);

#endif
