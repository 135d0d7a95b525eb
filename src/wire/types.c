#include "wire/types.h"

#include <string.h>

static const char *const names[KYMO_N_TYPES] = {
	"u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "x8", "x16", "x32", "x64",
};

const char *kymo_type_name(enum kymo_type type)
{
	return names[type];
}

int kymo_type_parse(const char *name, uint32_t length)
{
	for (int i = 0; i < KYMO_N_TYPES; i++)
		if (strlen(names[i]) == length && !memcmp(names[i], name, length))
			return i;
	return -1;
}
