/*
 * Any bytes as a SPEC. What is accepted keeps the promises of probe/spec.h; what is refused is a USAGE error whose caret
 * line stands below the text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "probe/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define check(condition) \
	do { \
		if (!(condition)) \
			abort(); \
	} while (0)

static void check_arg(const struct kymo_spec *spec, size_t i)
{
	const struct kymo_spec_arg *arg = &spec->args[i];

	check(arg->name && *arg->name);
	check(arg->fetch.type < KYMO_N_TYPES);
	if (arg->fetch.kind == KYMO_FETCH_STACK)
		check(arg->fetch.value >= 0 && arg->fetch.value <= KYMO_FETCH_STACK_MAX);
	if (arg->fetch.kind == KYMO_FETCH_ARGUMENT)
		check(arg->fetch.value >= 1 && arg->fetch.value <= 6 + KYMO_FETCH_STACK_MAX);
	for (size_t other = 0; other < i; other++)
		check(strcmp(spec->args[other].name, arg->name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct kymo_spec spec;
	struct kymo_error *error;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	error = kymo_spec_parse(text, &spec);
	if (error) {
		check(error->code == KYMO_ERROR_USAGE);
		check(!strncmp(error->message, "column ", 7) ? error->message[strlen(error->message) - 1] == '^'
							     : !strncmp(error->message, "a probe is written", 18));
		kymo_error_destroy(error);
	} else {
		check(!strcmp(spec.text, text) && spec.file && *spec.file);
		check(spec.symbol ? !!*spec.symbol : spec.offset >= 0);
		check(spec.n_args <= KYMO_EVENT_MAX_ARGS);
		for (size_t i = 0; i < spec.n_args; i++)
			check_arg(&spec, i);
		kymo_spec_deinit(&spec);
	}
	free(text);
	return 0;
}
