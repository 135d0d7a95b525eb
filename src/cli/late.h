/*
 * Files that probes name, looked for before a command is run: it may end before a mistyped name is found out.
 */
#ifndef KYMO_CLI_LATE_H
#define KYMO_CLI_LATE_H

#include "record/record.h"

/*
 * -1 where each file of a probe, of branches, or of a marker with a slash may be met. Those that are there have to have
 * the functions. A file may be met if it is there, by its path or in PATH, the dynamic linker's cache, its directories
 * or those of LD_LIBRARY_PATH; or if the command's words, its file, or LD_PRELOAD have its name. Else the exit status,
 * and a sentence was written.
 */
int cli_check_files(const struct kymo_record_options *options);

#endif
