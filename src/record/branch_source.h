/* What branches of a recording are made of. Private to the room. */
#ifndef KYMO_RECORD_BRANCH_SOURCE_H
#define KYMO_RECORD_BRANCH_SOURCE_H

#include <stdbool.h>

#include "record/record.h"

enum kymo_branch_hardware;

/* Whether it is one of the processor's, and which. */
bool branch_source_hardware(enum kymo_record_branch_source source, enum kymo_branch_hardware *ret);

/* As traces name it; and what it does not see. Static strings. */
const char *branch_source_name(enum kymo_record_branch_source source);
const char *branch_source_unseen(enum kymo_record_branch_source source, const struct kymo_record_options *options);

/* Why clones can't be the source of what is asked for, whatever the program is: a sentence without its end. NULL: they
 * may be. */
const char *branch_source_lacks_clones(const struct kymo_record_options *options);

#endif
