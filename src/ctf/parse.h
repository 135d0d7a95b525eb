/* Metadata from TSDL. */
#ifndef KYMO_CTF_PARSE_H
#define KYMO_CTF_PARSE_H

#include <stddef.h>

#include "base/error.h"

struct kymo_ctf_trace;

/* Parse TSDL as kymo_ctf_write_metadata() writes it. BAD_DATA with the line: "metadata:12: …". */
struct kymo_error *kymo_ctf_parse_metadata(const char *text, size_t size, struct kymo_ctf_trace *ret);

#endif
