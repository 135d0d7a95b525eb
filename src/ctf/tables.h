/*
 * The tables of threads and processes, and how they stand in the metadata: as keys of the environment, so that any
 * reader of CTF can have them.
 *
 *	thread_TID = "comm"			also what earlier traces have; of the only process, where there is one
 *	thread_TID_PID = "comm"
 *	thread_TID_PID_BEGIN = "comm"
 *	process_PID_PARENT_BEGIN_END = "command"
 */
#ifndef KYMO_CTF_TABLES_H
#define KYMO_CTF_TABLES_H

#include <stdbool.h>

#include "ctf/ctf.h"

/* Room for any key. */
#define TABLE_KEY 96

void kymo_ctf_thread_key(const struct kymo_ctf_trace *trace, const struct kymo_ctf_thread *thread, char key[TABLE_KEY]);
void kymo_ctf_process_key(const struct kymo_ctf_process *process, char key[TABLE_KEY]);

/* Would kymo_ctf_tables_take() take it for an entry of a table? */
bool kymo_ctf_is_table_key(const char *key);

/*
 * Move what is an entry of a table from the `n` keys of `env` into the tables of `trace`, which were empty; the others
 * close up. Of several entries of one id and one beginning one is kept. False when memory is out; each string is owned
 * by `env` or by `trace` then, too.
 */
bool kymo_ctf_tables_take(struct kymo_ctf_trace *trace, struct kymo_ctf_env *env, size_t *n);

void kymo_ctf_tables_deinit(struct kymo_ctf_trace *trace);

#endif
