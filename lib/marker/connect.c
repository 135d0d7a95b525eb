/*
 * Connections: what kymo_marker_set_probe() made. They wait here for markers, which come and go with their modules.
 */
#include "connect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"
#include "registry.h"
#include "update.h"

struct lib_connection {
	struct lib_connection *next; /* of its list */
	char *name;
	char *format; /* NULL: any */
	kymo_marker_probe *probe;
	void *data;
	int type;
};

/* Connections of one name are in one list, in the order in which they were made. */
#define LISTS 1024
static struct lib_connection *connections[LISTS];

/* FNV-1a. */
static struct lib_connection **list_of(const char *name)
{
	uint32_t hash = 2166136261;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619;
	return &connections[(hash ^ hash >> 16) % LISTS];
}

static bool is_inline(const struct lib_connection *connection)
{
	return connection->type & KYMO_MARKER_INLINE;
}

/* ---- probes of one marker -------------------------------------------------------------------- */

static void free_probe(struct lib_retired *retired)
{
	free(retired);
}

static struct lib_probe *append_probe(struct lib_probe **list, kymo_marker_probe *probe, void *data, const void *owner)
{
	struct lib_probe *made = malloc(sizeof(*made));
	if (!made)
		return NULL;
	*made = (struct lib_probe){ { NULL, free_probe }, NULL, probe, data, owner };
	while (*list)
		list = &(*list)->next;
	__atomic_store_n(list, made, __ATOMIC_RELEASE); /* with the loads of call_probes() */
	return made;
}

/* Take out those of `owner`; how many. */
static unsigned int take_out(struct lib_probe **list, const void *owner)
{
	unsigned int n = 0;

	while (*list) {
		struct lib_probe *probe = *list;
		if (probe->owner != owner) {
			list = &probe->next;
			continue;
		}
		/* A thread that is at it goes on along its `next`, which stays as it is. */
		__atomic_store_n(list, probe->next, __ATOMIC_SEQ_CST);
		kymo_lib_retire(&probe->retired);
		n++;
	}
	return n;
}

int kymo_lib_add_probe(struct lib_marker *marker, kymo_marker_probe *probe, void *data, const void *owner)
{
	if (!append_probe(&marker->probes, probe, data, owner))
		return -ENOMEM;
	__atomic_store_n(&marker->n_probes, marker->n_probes + 1, __ATOMIC_RELAXED);
	kymo_lib_changed(marker);
	return 0;
}

bool kymo_lib_remove_probes(struct lib_marker *marker, const void *owner)
{
	unsigned int n = take_out(&marker->probes, owner);

	__atomic_store_n(&marker->n_probes, marker->n_probes - n, __ATOMIC_RELAXED);
	if (n)
		kymo_lib_changed(marker);
	return n > 0;
}

void kymo_lib_disconnect_gone(struct lib_marker *marker)
{
	while (marker->probes)
		take_out(&marker->probes, marker->probes->owner);
	while (marker->inlines)
		take_out(&marker->inlines, marker->inlines->owner);
	__atomic_store_n(&marker->n_probes, 0, __ATOMIC_RELAXED);
}

/* ---- a connection and its markers ------------------------------------------------------------ */

/* Of a marker that has the name. */
static bool is_meant(const struct lib_marker *marker, const char *format)
{
	return !format || strcmp(marker->format, format) == 0;
}

/* -ENODEV: it can't be recorded in place; -ENOMEM. */
static int connect_marker(const struct lib_connection *connection, struct lib_marker *marker)
{
	if (!is_inline(connection))
		return kymo_lib_add_probe(marker, connection->probe, connection->data, connection);
	int status = kymo_record_add(marker);
	if (status < 0)
		return status;
	if (append_probe(&marker->inlines, NULL, connection->data, connection))
		return 0;
	kymo_record_remove(marker);
	return -ENOMEM;
}

static void disconnect_marker(const struct lib_connection *connection, struct lib_marker *marker)
{
	kymo_lib_remove_probes(marker, connection);
	if (take_out(&marker->inlines, connection))
		kymo_record_remove(marker);
}

/* Also of modules that must not be touched now: the lists are the library's own memory, but names are not. */
static void disconnect_all(const struct lib_connection *connection)
{
	struct lib_named at = { .name = connection->name };

	for (struct lib_marker *marker; (marker = kymo_lib_next_named(&at));)
		disconnect_marker(connection, marker);
	for (size_t i = 0; i < kymo_lib_registry.n_modules; i++) {
		struct lib_module *module = kymo_lib_registry.modules[i];
		for (size_t k = 0; k < module->n_markers && !kymo_lib_is_usable(module); k++)
			disconnect_marker(connection, &module->markers[k]);
	}
}

void kymo_lib_connect_new(struct lib_marker *marker)
{
	for (const struct lib_connection *connection = *list_of(marker->name); connection;
	     connection = connection->next) {
		if (strcmp(marker->name, connection->name) == 0 && is_meant(marker, connection->format))
			connect_marker(connection, marker);
	}
}

/* All markers that there are, and on. -ENODEV where none can be recorded in place. */
static int connect_all(const struct lib_connection *connection)
{
	struct lib_named at = { .name = connection->name };
	int status = 0;
	size_t n = 0, n_failed = 0;

	for (struct lib_marker *marker; (marker = kymo_lib_next_named(&at));) {
		if (!is_meant(marker, connection->format))
			continue;
		int one = connect_marker(connection, marker);
		if (one < 0 && one != -ENODEV)
			return one;
		n++;
		n_failed += one < 0;
	}
	if (n && n_failed == n)
		status = -ENODEV;
	return status < 0 ? status : kymo_lib_update(true);
}

/* ---- connecting, and the end of that --------------------------------------------------------- */

static struct lib_connection **find_connection(const char *name, kymo_marker_probe *probe, const void *data, int type)
{
	struct lib_connection **at = list_of(name);

	while (*at && !(strcmp((*at)->name, name) == 0 && (*at)->probe == probe && (*at)->data == data &&
			((*at)->type & KYMO_MARKER_INLINE) == (type & KYMO_MARKER_INLINE)))
		at = &(*at)->next;
	return at;
}

/* What other connections say. */
static int check_others(const char *name, kymo_marker_probe *probe, const void *data, int type)
{
	if (*find_connection(name, probe, data, type))
		return -EBUSY;
	for (const struct lib_connection *other = *list_of(name); other; other = other->next) {
		if (strcmp(other->name, name) == 0 && ((other->type | type) & KYMO_MARKER_EXCLUSIVE))
			return -EBUSY;
	}
	return 0;
}

/* What the markers say. */
static int check_markers(const char *name, const char *format, int type)
{
	struct lib_named at = { .name = name };
	bool is_name_known = false;

	if ((type & KYMO_MARKER_INLINE) && !kymo_record_is_running())
		return -ENODEV;
	for (const struct lib_marker *marker; (marker = kymo_lib_next_named(&at));) {
		if (is_meant(marker, format))
			return 0;
		is_name_known = true;
	}
	if (is_name_known)
		return -EINVAL;
	return type & KYMO_MARKER_PENDING ? 0 : -ENOENT;
}

static void destroy_connection(struct lib_connection *connection)
{
	if (!connection)
		return;
	free(connection->name);
	free(connection->format);
	free(connection);
}

static struct lib_connection *create(const char *name, const char *format, kymo_marker_probe *probe, void *data,
				     int type)
{
	struct lib_connection *connection = calloc(1, sizeof(*connection));
	if (!connection)
		return NULL;
	*connection = (struct lib_connection){ NULL, strdup(name), format ? strdup(format) : NULL, probe, data, type };
	if (connection->name && (connection->format || !format))
		return connection;
	destroy_connection(connection);
	return NULL;
}

/* Threads that are in its probes go on while sites are turned off, so they are waited for from before that on. */
static void take_back(struct lib_connection *connection)
{
	disconnect_all(connection);
	kymo_lib_begin_grace();
	kymo_lib_update(false);
	destroy_connection(connection);
}

int kymo_lib_connect(const char *name, const char *format, kymo_marker_probe *probe, void *data, int type)
{
	int status = check_others(name, probe, data, type);
	if (status == 0)
		status = check_markers(name, format, type);
	if (status < 0)
		return status;
	struct lib_connection *connection = create(name, format, probe, data, type);
	if (!connection)
		return -ENOMEM;
	status = connect_all(connection);
	if (status < 0) {
		take_back(connection);
		return status;
	}
	struct lib_connection **end = list_of(name);
	while (*end)
		end = &(*end)->next;
	*end = connection;
	return 0;
}

bool kymo_lib_disconnect(const char *name, kymo_marker_probe *probe, const void *data, int type)
{
	struct lib_connection **at = find_connection(name, probe, data, type), *connection = *at;

	if (!connection)
		return false;
	*at = connection->next;
	take_back(connection);
	return true;
}

static void take_out_inlines(const struct lib_connection *connection)
{
	for (size_t i = 0; i < kymo_lib_registry.n_modules; i++) {
		struct lib_module *module = kymo_lib_registry.modules[i];
		for (size_t k = 0; k < module->n_markers; k++)
			take_out(&module->markers[k].inlines, connection);
	}
}

static void drop_inline_of(struct lib_connection **at)
{
	while (*at) {
		struct lib_connection *connection = *at;
		if (!is_inline(connection)) {
			at = &connection->next;
			continue;
		}
		*at = connection->next;
		take_out_inlines(connection);
		destroy_connection(connection);
	}
}

void kymo_lib_drop_inline(void)
{
	for (size_t i = 0; i < LISTS; i++)
		drop_inline_of(&connections[i]);
}
