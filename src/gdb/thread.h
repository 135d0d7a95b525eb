/* Processes and threads of a stub. On the hub's thread. */
#ifndef KYMO_GDB_THREAD_H
#define KYMO_GDB_THREAD_H

#include "gdb/state.h"

struct gdb_process *gdb_find_process(const struct kymo_gdb *gdb, pid_t pid);
struct gdb_process *gdb_add_process(struct kymo_gdb *gdb, pid_t pid);
void gdb_drop_process(struct kymo_gdb *gdb, struct gdb_process *process);

/* Whether the client has yet to be told of the fork that has made a process. */
void gdb_set_untold(struct kymo_gdb *gdb, pid_t pid, bool is_untold);

/* Ends of a process (0: of all) and of its threads are told no more. */
void gdb_forget_ends(struct kymo_gdb *gdb, pid_t pid);

/* A thread that lives and that the client knows, of any process (pid 0) or of that. */
struct gdb_thread *gdb_find_thread(const struct kymo_gdb *gdb, pid_t pid, pid_t tid);

/* The first one of a process that lives; pid <= 0: of any that the client knows. NULL: none. */
struct gdb_thread *gdb_any_thread(const struct kymo_gdb *gdb, pid_t pid);

/* The thread that an id means, the general one where it means any; NULL: there is none. */
struct gdb_thread *gdb_thread_of(const struct kymo_gdb *gdb, const struct gdb_id *id);

/* … of the packets that have none: as H has set it. */
struct gdb_thread *gdb_general_thread(const struct kymo_gdb *gdb);

/* A thread for memory and breakpoints: the general one. Where that has ended, another one of its process. */
struct gdb_thread *gdb_memory_thread(const struct kymo_gdb *gdb);

/* Whether an id, which may be -1 or 0, includes a thread. */
bool gdb_id_includes(const struct gdb_id *id, const struct gdb_thread *thread);

/* "p1.2", or "2" for clients without multiprocess. */
void gdb_put_id(const struct kymo_gdb *gdb, struct gdb_text *text, pid_t pid, pid_t tid);

/* How far the client knows of the thread's event becomes another. A change that the table does not have is a bug. */
void gdb_set_telling(struct gdb_thread *thread, enum gdb_telling telling);

/* Whether the client was told of the thread's event. */
bool gdb_was_told(const struct gdb_thread *thread);

/* Have the engine told what its process' settings and its own steps want. */
void gdb_set_mask(struct gdb_thread *thread);

/* Whether the client catches a system call of the thread's process. */
bool gdb_catches_call(const struct gdb_thread *thread, uint64_t number);

/* It is no thread of the stub any more. Its struct goes with the engine. */
void gdb_forget_thread(struct kymo_gdb *gdb, struct gdb_thread *thread);

/* Whether it executes a 32-bit program, which clients can't be told of: the target description is another. Opens no
 * file but /proc/PID/auxv, so it does not wait. */
bool gdb_is_narrow(pid_t pid);

#endif
