/*
 * Between those that find modules, hold the lock, and connect. Private to the library.
 */
#ifndef KYMO_LIB_REGISTRY_H
#define KYMO_LIB_REGISTRY_H

#include "notes.h"

/* ---- lock.c ---------------------------------------------------------------------------------- */

/* The lock alone. -EDEADLK where this thread has it. */
bool kymo_lib_has_lock(void); /* this thread */
int kymo_lib_lock(void);
void kymo_lib_unlock(void);

/* Release the lock, wait for readers as kymo_lib_leave() says, free what was retired. */
void kymo_lib_unlock_and_wait(bool wait);

/* The lock is held: whoever is to be waited for is a reader now. Without this, or where something was retired since,
 * readers of kymo_lib_leave() are waited for. */
void kymo_lib_begin_grace(void);

/* dl_iterate_phdr(), which nobody forks in: the loader's lock for it would stay locked in the child. */
int kymo_lib_iterate(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data);

/* ---- registry.c ------------------------------------------------------------------------------ */

/* Where the module is among those of the registry. */
size_t kymo_lib_index_of(const struct lib_module *module);

/* ---- modules.c ------------------------------------------------------------------------------- */

/* A module with notes, as it was found without the lock. */
struct lib_seen {
	struct lib_found found;
	const char *name; /* as the loader has it: "" is the program */
	void *pin;        /* dlopen()'s, where it had to be held; NULL where it could not be: it is not touched then */
};

struct lib_look {
	bool is_new; /* all of the following was looked up: something may have changed since the last time */
	struct lib_seen *seen;
	size_t n;
	char *names;
	unsigned long long adds, subs; /* the loader's counts then */
};

/* Find modules, and hold those that do not tell. No lock is held. Without memory nothing is new. */
void kymo_lib_look_around(struct lib_look *ret);

/* The lock is held: know those modules, connect their markers, and forget those that are not there any more. */
void kymo_lib_adopt(struct lib_look *look);

/*
 * The lock is held: modules that do not tell may not be touched any more. The caller gives the result to
 * kymo_lib_unpin() when it has released the lock: dlclose() runs destructors.
 */
struct lib_look kymo_lib_end_look(void);
void kymo_lib_unpin(struct lib_look *look);

/* ---- connect.c ------------------------------------------------------------------------------- */

/* Connect a probe with the markers that there are, and with those to come. The lock is held. As
 * kymo_marker_set_probe(), of arguments that are right. */
int kymo_lib_connect(const char *name, const char *format, kymo_marker_probe *probe, void *data, int type);

/* End that; false: there is no such connection. The lock is held. */
bool kymo_lib_disconnect(const char *name, kymo_marker_probe *probe, const void *data, int type);

/* Connect what waits for this marker. The lock is held; the caller updates. */
void kymo_lib_connect_new(struct lib_marker *marker);

/* Its probes are forgotten: the marker goes. */
void kymo_lib_disconnect_gone(struct lib_marker *marker);

/* ---- update.c -------------------------------------------------------------------------------- */

/* The module of a new marker may have been known before, and forgotten: what is left in it is this marker's now. */
void kymo_lib_inherit(struct lib_marker *marker);

/* Slots and gates of a marker whose module goes and can still be touched: nothing is called any more. */
void kymo_lib_silence(struct lib_marker *marker);

/* Never look at it again. */
void kymo_lib_unchanged(const struct lib_module *module);

#endif
