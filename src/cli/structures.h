/* How much of structures is recorded: --struct-depth and --struct-size. */
#ifndef KYMO_CLI_STRUCTURES_H
#define KYMO_CLI_STRUCTURES_H

#include "expr/shape.h"

/* Take the value of one of the options, for all probes that are named after it. 0, or 2: it is wrong, and `command`
 * has said so. */
int cli_structures_take_depth(const char *command, const char *text);
int cli_structures_take_size(const char *command, const char *text);

/* The limits that were taken, or those without options. */
struct kymo_shape_limits cli_structures_limits(void);

#endif
