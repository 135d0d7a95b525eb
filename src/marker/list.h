/* All markers of a module. */
#ifndef KYMO_MARKER_LIST_H
#define KYMO_MARKER_LIST_H

#include "base/error.h"

struct kymo_marker_list;
struct kymo_module;

/* All markers of a module. BAD_DATA for notes that are damaged: what, and where in the file. */
struct kymo_error *kymo_markers_create(struct kymo_module *module, struct kymo_marker_list **ret);
void kymo_markers_destroy(struct kymo_marker_list *list);

#endif
