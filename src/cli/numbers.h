/* Numbers as users write them. */
#ifndef KYMO_CLI_NUMBERS_H
#define KYMO_CLI_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

bool cli_parse_number(const char *text, uint64_t *ret); /* decimal digits */
bool cli_parse_pid(const char *text, pid_t *ret);
bool cli_parse_size(const char *text, uint64_t *ret);  /* bytes, with K, M or G for powers of 1024 */
bool cli_parse_seconds(const char *text, double *ret); /* "5", "0.25"; more than 0 */

#endif
