/* Launching a command. */
#ifndef KYMO_PROC_LAUNCH_H
#define KYMO_PROC_LAUNCH_H

#include "base/error.h"

struct kymo_process;

/*
 * Start `argv` (looked up in PATH), stopped before its first instruction, traced. If kymo dies before
 * kymo_process_resume(), the command runs on by itself. NOT_FOUND, PERMISSION as execvp gives them.
 */
struct kymo_error *kymo_process_launch(char *const *argv, struct kymo_process **ret);

#endif
