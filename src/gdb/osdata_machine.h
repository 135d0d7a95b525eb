/* Lists of qXfer:osdata that are no processes': each is a file of /proc, a line an item. */
#ifndef KYMO_GDB_OSDATA_MACHINE_H
#define KYMO_GDB_OSDATA_MACHINE_H

struct gdb_osdata_list;

/* Of System V, with their owners and times. */
void gdb_list_queues(struct gdb_osdata_list *list);
void gdb_list_semaphores(struct gdb_osdata_list *list);
void gdb_list_shared(struct gdb_osdata_list *list);

/* TCP and UDP, of the stub's network. */
void gdb_list_sockets(struct gdb_osdata_list *list);

/* The kernel's. */
void gdb_list_modules(struct gdb_osdata_list *list);

#endif
