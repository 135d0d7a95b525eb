/* Threads as lines and as JSON. */
#ifndef KYMO_CLI_THREADS_PRINT_H
#define KYMO_CLI_THREADS_PRINT_H

#include <stdio.h>

struct cli_threads;

/* As lines, at most `rows` of them (0: any number); the busiest threads first, where their CPU time is known. */
void cli_threads_print(struct cli_threads *view, FILE *out, int rows);
void cli_threads_print_json(struct cli_threads *view, FILE *out);

#endif
