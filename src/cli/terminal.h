/*
 * What the terminal behind a descriptor can do.
 */
#ifndef KYMO_CLI_TERMINAL_H
#define KYMO_CLI_TERMINAL_H

#include <stdbool.h>

/* Whether `fd` is a terminal that takes control codes. */
bool cli_terminal_takes_codes(int fd);

/* Its width and height in characters; 80 and 24 where it tells none, or is none. `rows_ret` may be NULL. */
void cli_terminal_size(int fd, int *columns_ret, int *rows_ret);

#endif
