/* Metadata as TSDL. */
#ifndef KYMO_CTF_WRITE_H
#define KYMO_CTF_WRITE_H

#include "base/error.h"

struct kymo_ctf_trace;

/* Write `metadata` in the directory `dirfd`, through a hidden temporary name and rename, so that a reader sees the old
 * one or the new one. */
struct kymo_error *kymo_ctf_write_metadata(int dirfd, const struct kymo_ctf_trace *trace);

#endif
