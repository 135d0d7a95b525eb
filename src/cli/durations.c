#include "cli/durations.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "probe/spec/spec.h"

/* Whether a text of -p is of a function's returns. */
static bool says_return(const char *text)
{
	const char *filter = strstr(text, " /"), *is_return = strstr(text, "%return");

	return !strncmp(text, "r ", 2) || !strncmp(text, "r:", 2) || (is_return && (!filter || is_return < filter));
}

struct kymo_error *cli_durations_parse(const char *text, bool is_return, struct cli_specs *ret,
				       struct kymo_aggr_pieces *limits_ret)
{
	struct kymo_aggr_pieces limits;
	kymo_cleanup_free char *rest = NULL;
	struct kymo_error *error;

	if (!is_return && !says_return(text))
		return cli_specs_parse(text, kymo_spec_parse, ret);
	error = kymo_aggr_find_limits(text, &limits);
	if (error)
		return error;
	rest = kymo_aggr_probe_text(&limits);
	if (!rest)
		return &kymo_error_no_memory;
	error = cli_specs_parse(rest, is_return ? kymo_spec_parse_return : kymo_spec_parse, ret);
	if (!error)
		*limits_ret = limits;
	return error;
}
