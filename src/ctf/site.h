/*
 * Where an event's probe sits, as one URI. TSDL has no room for attributes of one's own that other readers skip without
 * a word; `model.emf.uri` is the one free text that it gives an event:
 *
 *	file:/usr/lib/libc.so.6?offset=0x9a0e0&symbol=malloc%2b0x12&build-id=93ac…
 *	file:/usr/lib/libc.so.6?offset=0x9a0f4&symbol=malloc&build-id=93ac…&kind=return&function=0x9a0e0
 *	file:/usr/bin/server?offset=0x1234&symbol=serve%2b0x40&build-id=01fe…&kind=marker&source=server.c:120&format=fd%3d%25d
 */
#ifndef KYMO_CTF_SITE_H
#define KYMO_CTF_SITE_H

#include <stdbool.h>
#include <stdio.h>

#include "ctf/trace.h"

/* "entry", "marker" …, as traces and reports spell it. Static. */
const char *kymo_ctf_kind_name(enum kymo_ctf_kind kind);

/* Does the event say anything about its site? */
bool kymo_ctf_has_site(const struct kymo_ctf_event *event);

/* Write the URI, without quotes; it holds no character that a TSDL string would have to escape. */
void kymo_ctf_write_site(FILE *out, const struct kymo_ctf_event *event);

/* Set path, offset, symbol, build_id, source, format, sample, is_filtered, kind and function_offset (all unset before)
 * from a URI. 0, -EINVAL, -ENOMEM; the event owns what has been set in each case. */
int kymo_ctf_parse_site(const char *uri, struct kymo_ctf_event *event);

#endif
