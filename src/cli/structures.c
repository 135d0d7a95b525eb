#include "cli/structures.h"

#include "cli/numbers.h"
#include "cli/output.h"

#define DEPTH 8 /* by default */

/* One command line has one set of them. */
static struct kymo_shape_limits limits = { .depth = DEPTH, .size = KYMO_SHAPE_SIZE_MAX };

int cli_structures_take_depth(const char *command, const char *text)
{
	uint64_t depth;

	if (!cli_parse_number(text, &depth) || !depth || depth > KYMO_SHAPE_DEPTH_MAX)
		return cli_usage(command, "--struct-depth takes a number from 1 to %d, not '%s'", KYMO_SHAPE_DEPTH_MAX,
				 text);
	limits.depth = (unsigned int)depth;
	return 0;
}

int cli_structures_take_size(const char *command, const char *text)
{
	uint64_t size;

	if (!cli_parse_size(text, &size) || !size || size > KYMO_SHAPE_SIZE_MAX)
		return cli_usage(command, "--struct-size takes a number of bytes from 1 to %d, not '%s'",
				 KYMO_SHAPE_SIZE_MAX, text);
	limits.size = (uint32_t)size;
	return 0;
}

struct kymo_shape_limits cli_structures_limits(void)
{
	return limits;
}
