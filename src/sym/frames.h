/* What describes frames. Private to the room. */
#ifndef KYMO_SYM_FRAMES_H
#define KYMO_SYM_FRAMES_H

#include "base/error.h"

struct kymo_module;

/* Fill in `fdes`, `cies` and `frame_marks`. */
struct kymo_error *sym_frames_read(struct kymo_module *module);

#endif
