/* System calls as JSON, an object a line. */
#ifndef KYMO_STRACE_JSON_H
#define KYMO_STRACE_JSON_H

#include "strace/sink.h"

extern const struct strace_sink strace_json;

#endif
