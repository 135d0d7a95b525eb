/* The code that a user has chosen. Private to the room. */
#ifndef KYMO_BRANCH_CHOSEN_H
#define KYMO_BRANCH_CHOSEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct branch_space;
struct kymo_branch_spec;
struct kymo_branches;
struct kymo_file_id;

/* What the names of the specs' files mean, links followed; a fresh array, or NULL when memory is out. */
struct kymo_file_id *branch_name_files(const struct kymo_branch_spec *specs, size_t n);

/* Find what the specs choose in a space that is new. False when memory is out. */
bool branch_choose(struct kymo_branches *branches, struct branch_space *space);

/* Whether an address is in it. `space` may be NULL. */
bool branch_is_chosen(const struct branch_space *space, uint64_t address);

/* NOT_FOUND for the first spec that has chosen nothing by now. */
struct kymo_error *branch_check_met(const struct kymo_branches *branches);

/* Before a command runs: NOT_FOUND where a spec's file is found by its name, and has no such function. */
struct kymo_error *branch_check_files(const struct kymo_branches *branches);

#endif
