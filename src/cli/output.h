/*
 * What the user is told. Only this room prints and decides exit statuses: 0, 1 (failed, a sentence on stderr), 2 (the
 * user's words are wrong).
 */
#ifndef KYMO_CLI_OUTPUT_H
#define KYMO_CLI_OUTPUT_H

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

/* "kymo: SENTENCE" and "try 'kymo help COMMAND'" on stderr; `command` may be NULL. Returns 2. */
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "kymo: SENTENCE" on stderr, with the hint where the user's words are wrong. Names are demangled, but for what quotes
 * the user's words on a line of its own. Consumes the error; returns 1 or 2. */
int cli_fail(const char *command, struct kymo_error *error);

/* The exit status that tells how a command has ended: its own, or 128 and the number of a signal, as of shells. */
int cli_status_of(int wait_status);

/* "kymo: warning: SENTENCE" on stderr, with names demangled. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* As JSON: a name from a symbol table, demangled unless the user wants it raw. */
void cli_print_json_name(FILE *out, const char *name);

/* "1,234,567" and "12.3 MiB". `out` has room for 32 bytes. */
const char *cli_format_count(uint64_t count, char out[32]);
const char *cli_format_bytes(uint64_t bytes, char out[32]);

#endif
