/* Engines of a process's threads. */
#ifndef KYMO_CLI_THREADS_ENGINES_H
#define KYMO_CLI_THREADS_ENGINES_H

#include <stdio.h>

struct cli_threads;
struct kymo_thread_info;

/* The engines of its threads, asked of their hub. `before` is the look before. */
void cli_threads_look_at_engines(struct cli_threads *view, const struct cli_threads *before);

/* A thread's: "-" without any, "?" where its tracer does not tell. JSON has a list, or null. */
void cli_threads_print_engines(const struct cli_threads *view, const struct kymo_thread_info *thread, FILE *out);
void cli_threads_print_engines_json(const struct cli_threads *view, const struct kymo_thread_info *thread, FILE *out);

#endif
