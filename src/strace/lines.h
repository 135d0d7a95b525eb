/* System calls as lines, as strace writes them. */
#ifndef KYMO_STRACE_LINES_H
#define KYMO_STRACE_LINES_H

#include "strace/sink.h"

extern const struct strace_sink strace_lines;

#endif
