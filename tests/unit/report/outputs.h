/* Reports on the trace in the current directory, compared whole. */
#ifndef TESTS_UNIT_REPORT_OUTPUTS_H
#define TESTS_UNIT_REPORT_OUTPUTS_H

#include "report/report.h"
#include "timeline.h"

/* The caller's. Where gcc inlines it, it takes the text for a pointer to this function's own variable. */
__attribute__((noinline, unused)) static char *reported(const struct kymo_report_options *options)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	must(kymo_report(".", options, out));
	assert_int_equal(fclose(out), 0);
	return text;
}

static inline void assert_report(const struct kymo_report_options *options, const char *expected)
{
	kymo_cleanup_free char *text = reported(options);

	if (strcmp(text, expected))
		print_message("reported:\n%s", text);
	assert_string_equal(text, expected);
}

/* `text` passes for JSON with others. The directory is the current one. */
static inline void assert_is_json(const char *text)
{
	kymo_cleanup_free char *output = NULL;
	int status;

	write_file(AT_FDCWD, ".json", text, strlen(text));
	output = run("python3 -m json.tool .json 2>&1 >.out", &status);
	assert_string_equal(output, "");
	assert_int_equal(status, 0);
}

/* Make an empty directory the current one, so that reports don't hold a random name. */
static inline void enter(struct scratch *scratch)
{
	scratch_init(scratch);
	assert_int_equal(fchdir(scratch->fd), 0);
}

static inline void leave(struct scratch *scratch)
{
	assert_int_equal(chdir("/"), 0);
	scratch_deinit(scratch);
}

#endif
