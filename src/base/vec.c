#include "base/vec.h"

#include <stdint.h>

bool kymo_vec_reserve_(void **items, size_t *cap, size_t want, size_t size)
{
	size_t grown;
	void *moved;

	if (want <= *cap)
		return true;
	grown = *cap ? *cap * 2 : 8;
	if (grown < want)
		grown = want;
	if (grown > SIZE_MAX / 2 / size)
		return false;
	moved = realloc(*items, grown * size);
	if (!moved)
		return false;
	*items = moved;
	*cap = grown;
	return true;
}
