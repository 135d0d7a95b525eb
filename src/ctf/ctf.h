/*
 * CTF 1.8 (Common Trace Format): what kymo writes and reads back. https://diamon.org/ctf/v1.8.3/
 *
 * A trace is a directory: `metadata` (TSDL text) and a stream file per ring. Each stream file is a run of packets:
 * `struct kymo_ctf_packet`, then records as in wire/event.h. The TSDL is the only description; reports parse it back
 * (the dialect that kymo writes, not all of TSDL).
 *
 * Writers are used from one thread. Readers take nothing on trust: a trace may be truncated, damaged or hostile.
 */
#ifndef KYMO_CTF_CTF_H
#define KYMO_CTF_CTF_H

#include "ctf/packet.h"
#include "ctf/parse.h"
#include "ctf/reader.h"
#include "ctf/tables.h"
#include "ctf/trace.h"
#include "ctf/write.h"

#endif
