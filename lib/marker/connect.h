/*
 * Connections of probes with markers. Private to the library; the lock is held for all of it.
 */
#ifndef KYMO_LIB_CONNECT_H
#define KYMO_LIB_CONNECT_H

#include "markers.h"

/* Append a probe to one marker. -ENOMEM. It is called once kymo_lib_update() has turned the marker on. */
int kymo_lib_add_probe(struct lib_marker *marker, kymo_marker_probe *probe, void *data, const void *owner);

/* Remove the probes of `owner`; false where there are none. They may run until kymo_lib_leave() returns. */
bool kymo_lib_remove_probes(struct lib_marker *marker, const void *owner);

/* Connect a probe with the markers that there are, and with those to come. As kymo_marker_set_probe(), of arguments
 * that are right. */
int kymo_lib_connect(const char *name, const char *format, kymo_marker_probe *probe, void *data, int type);

/* End that; false: there is no such connection. */
bool kymo_lib_disconnect(const char *name, kymo_marker_probe *probe, const void *data, int type);

/* Connect what waits for this marker. The caller updates. */
void kymo_lib_connect_new(struct lib_marker *marker);

/* Its probes are forgotten: the marker goes. */
void kymo_lib_disconnect_gone(struct lib_marker *marker);

/* A recording that ends takes the connections of KYMO_MARKER_INLINE with it. */
void kymo_lib_drop_inline(void);

#endif
