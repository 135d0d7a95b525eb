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
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/error.h"
#include "ctf/trace.h"

struct kymo_ctf_process;
struct kymo_ctf_thread;
struct kymo_ctf_trace;

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

/*
 * Add to the tables; strings are copied. An entry with the same id and the same `begin` is replaced, so that a name can
 * be looked at again and again. The table of threads need not be complete. Pointers into the tables are good until the
 * next addition.
 */
struct kymo_error *kymo_ctf_trace_add_thread(struct kymo_ctf_trace *trace, int32_t tid, int32_t pid, uint64_t begin,
					     const char *comm);
struct kymo_error *kymo_ctf_trace_add_process(struct kymo_ctf_trace *trace, int32_t pid, int32_t parent, uint64_t begin,
					      const char *command);

/* The latest process of that pid has ended, or has become another by exec. Nothing happens where there is none. */
void kymo_ctf_trace_end_process(struct kymo_ctf_trace *trace, int32_t pid, uint64_t end);

/* The latest process of that pid was not recorded after all. Nothing happens where there is none. */
void kymo_ctf_trace_drop_process(struct kymo_ctf_trace *trace, int32_t pid);

/*
 * The owner of the id at `tsc`: the last that had begun by then, or the first of all, as a beginning may be noticed
 * late. NULL if the table has no such id.
 */
const struct kymo_ctf_thread *kymo_ctf_trace_thread(const struct kymo_ctf_trace *trace, int32_t tid, uint64_t tsc);
const struct kymo_ctf_process *kymo_ctf_trace_process(const struct kymo_ctf_trace *trace, int32_t pid, uint64_t tsc);

/* The process that a record's thread belonged to: by the table of threads, else the one whose pid the tid is, else the
 * only one there is. Or NULL. */
const struct kymo_ctf_process *kymo_ctf_trace_process_of(const struct kymo_ctf_trace *trace, int32_t tid, uint64_t tsc);

/* How many entries the tables have for an id. */
size_t kymo_ctf_trace_n_threads_of(const struct kymo_ctf_trace *trace, int32_t tid);
size_t kymo_ctf_trace_n_processes_of(const struct kymo_ctf_trace *trace, int32_t pid);

/* How many different pids the tables have. */
size_t kymo_ctf_trace_n_pids(const struct kymo_ctf_trace *trace);

#endif
