/* Registers of stopped threads, and their description. On the hub's thread. */
#ifndef KYMO_GDB_REGISTERS_H
#define KYMO_GDB_REGISTERS_H

#include "gdb/state.h"

/* g, G, p, P. */
void gdb_read_registers(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_write_registers(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_read_register(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_write_register(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* Frame and stack pointer and program counter, as stop replies have them. */
void gdb_put_expedited(struct gdb_thread *thread, struct gdb_text *reply);

/* All registers of a stopped thread, as bytes: what is not there is 0. And how many bytes these are; 0: not known. */
void gdb_put_register_block(struct gdb_thread *thread, struct gdb_text *ret);
size_t gdb_register_block_size(struct kymo_gdb *gdb);

/* A general register, by its number in the target description, where these are its thread's. */
bool gdb_register_of(struct gdb_thread *thread, const struct user_regs_struct *general, unsigned int number,
		     uint64_t *ret);

int gdb_get_pc(struct gdb_thread *thread, uint64_t *ret);
int gdb_set_pc(struct gdb_thread *thread, uint64_t pc);

/* The thread goes on. If it stands in a system call, and the client has moved it elsewhere, it leaves that call. */
void gdb_leave_call(struct gdb_thread *thread);

/* Find out which registers there are, if that is not known yet: by a thread that is stopped, whose list is the
 * processor's. False: no thread is stopped. */
bool gdb_learn_registers(struct kymo_gdb *gdb);

/* target.xml. */
void gdb_describe_target(struct kymo_gdb *gdb, struct gdb_text *text);

#endif
