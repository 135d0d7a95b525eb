/*
 * Where an event's probe sits, as one URI. TSDL has no room for attributes of one's own that other readers skip without
 * a word; `model.emf.uri` is the one free text that it gives an event:
 *
 *	file:/usr/lib/libc.so.6?offset=0x9a0e0&symbol=malloc%2b0x12&build-id=93ac…
 */
#ifndef KYMO_CTF_SITE_H
#define KYMO_CTF_SITE_H

#include <stdbool.h>
#include <stdio.h>

#include "ctf/ctf.h"

/* Does the event say anything about its site? */
bool kymo_ctf_has_site(const struct kymo_ctf_event *event);

/* Write the URI, without quotes; it holds no character that a TSDL string would have to escape. */
void kymo_ctf_write_site(FILE *out, const struct kymo_ctf_event *event);

/* Set path, offset, symbol and build_id (all unset before) from a URI. 0, -EINVAL, -ENOMEM; the event owns what has
 * been set in each case. */
int kymo_ctf_parse_site(const char *uri, struct kymo_ctf_event *event);

#endif
