#include "wire/types.h"

#include <string.h>

static const char *const names[] = {
	"u8",
	"u16",
	"u32",
	"u64",
	"s8",
	"s16",
	"s32",
	"s64",
	"x8",
	"x16",
	"x32",
	"x64",
	[KYMO_TYPE_STRING] = "string",
	[KYMO_TYPE_BYTES] = "bytes",
	[KYMO_TYPE_F32] = "f32",
	[KYMO_TYPE_F64] = "f64",
};

const char *kymo_type_name(enum kymo_type type)
{
	return names[type];
}

static int find_type_number(const char *name, uint32_t length, int n)
{
	for (int i = 0; i < n; i++)
		if (names[i] && strlen(names[i]) == length && !memcmp(names[i], name, length))
			return i;
	return -1;
}

int kymo_type_parse(const char *name, uint32_t length)
{
	return find_type_number(name, length, KYMO_N_TYPES);
}

int kymo_type_parse_any(const char *name, uint32_t length)
{
	return find_type_number(name, length, sizeof(names) / sizeof(names[0]));
}
