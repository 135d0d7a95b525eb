/* Texts by number: equal ones have the same, so that tables compare numbers. */
#ifndef KYMO_AGGR_STRINGS_H
#define KYMO_AGGR_STRINGS_H

#include <stdint.h>

#include "base/index.h"
#include "base/vec.h"

#define KYMO_STRINGS_MAX 65536u

struct kymo_aggr_strings {
	KYMO_VEC(char *) items;
	struct kymo_index index; /* of `items` */
};

void kymo_strings_deinit(struct kymo_aggr_strings *strings);

/* The number of a text, from 1; 0 where memory is out, or KYMO_STRINGS_MAX are there. */
uint32_t kymo_strings_number(struct kymo_aggr_strings *strings, const char *text);

/* The text of a number, "" of one that is none; good as long as the strings. */
const char *kymo_strings_text(const struct kymo_aggr_strings *strings, uint64_t number);

#endif
