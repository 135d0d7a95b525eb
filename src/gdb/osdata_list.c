#include "gdb/osdata_list.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "procfs/info.h"

enum { NAME_ENTRY_MAX = 65536 };

#define LEFT_OUT "..."

bool gdb_osdata_goes_on(struct gdb_osdata_list *list)
{
	list->is_called_off |= list->terms->is_called_off(list->terms->data);
	return !list->is_called_off && !list->is_full && !list->document->has_failed;
}

void gdb_osdata_begin_item(struct gdb_osdata_list *list)
{
	list->is_full = list->document->n >= list->terms->limit;
	gdb_text_put(list->document, "<item>");
}

void gdb_osdata_end_item(struct gdb_osdata_list *list)
{
	gdb_text_put(list->document, "</item>");
}

void gdb_osdata_put(struct gdb_osdata_list *list, const char *name, const char *value)
{
	gdb_text_put(list->document, "<column name=\"");
	gdb_text_xml(list->document, name);
	gdb_text_put(list->document, "\">");
	gdb_text_xml(list->document, list->is_full ? LEFT_OUT : value);
	gdb_text_put(list->document, "</column>");
}

void gdb_osdata_put_number(struct gdb_osdata_list *list, const char *name, long value)
{
	char text[24];

	snprintf(text, sizeof(text), "%ld", value);
	gdb_osdata_put(list, name, text);
}

void gdb_osdata_put_user(struct gdb_osdata_list *list, const char *name, uid_t user, const char *unknown)
{
	kymo_cleanup_free char *buffer = malloc(NAME_ENTRY_MAX);
	struct passwd entry, *found = NULL;

	if (buffer)
		getpwuid_r(user, &entry, buffer, NAME_ENTRY_MAX, &found);
	gdb_osdata_put(list, name, found ? found->pw_name : unknown);
}

void gdb_osdata_put_group(struct gdb_osdata_list *list, const char *name, gid_t group, const char *unknown)
{
	kymo_cleanup_free char *buffer = malloc(NAME_ENTRY_MAX);
	struct group entry, *found = NULL;

	if (buffer)
		getgrgid_r(group, &entry, buffer, NAME_ENTRY_MAX, &found);
	gdb_osdata_put(list, name, found ? found->gr_name : unknown);
}

void gdb_osdata_read_command(pid_t pid, char ret[16])
{
	kymo_read_comm(pid, ret);
	if (!*ret)
		strcpy(ret, "?");
}
