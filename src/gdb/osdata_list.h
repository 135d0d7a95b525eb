/* A list of qXfer:osdata that is made: items, and their columns. On the main thread. */
#ifndef KYMO_GDB_OSDATA_LIST_H
#define KYMO_GDB_OSDATA_LIST_H

#include <stdbool.h>
#include <sys/types.h>

#include "gdb/osdata.h"

struct gdb_osdata_list {
	struct gdb_text *document;
	const struct gdb_osdata_terms *terms;
	bool is_full; /* this item is the last one, and stands for those that are left out */
	bool is_called_off;
};

/* Whether another item may follow. Asked before each item. */
bool gdb_osdata_goes_on(struct gdb_osdata_list *list);

void gdb_osdata_begin_item(struct gdb_osdata_list *list);
void gdb_osdata_end_item(struct gdb_osdata_list *list);

/* A column of the item: "..." where that is the last one of a list that is full. */
void gdb_osdata_put(struct gdb_osdata_list *list, const char *name, const char *value);
void gdb_osdata_put_number(struct gdb_osdata_list *list, const char *name, long value);

/* A user, or a group, by name. `unknown`: where there is no name. */
void gdb_osdata_put_user(struct gdb_osdata_list *list, const char *name, uid_t user, const char *unknown);
void gdb_osdata_put_group(struct gdb_osdata_list *list, const char *name, gid_t group, const char *unknown);

/* The name of a process' first thread; "?": not known any more. */
void gdb_osdata_read_command(pid_t pid, char ret[16]);

#endif
