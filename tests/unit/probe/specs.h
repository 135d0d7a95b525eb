/* What the tests of SPECs share. Include after cmocka.h. */
#ifndef KYMO_TESTS_PROBE_SPECS_H
#define KYMO_TESTS_PROBE_SPECS_H

#include <string.h>

#include "base/cleanup.h"
#include "probe/spec/spec.h"

static inline struct kymo_spec parse(const char *text)
{
	struct kymo_spec spec = { 0 };
	struct kymo_error *error = kymo_spec_parse(text, &spec);

	if (error)
		fail_msg("%s: %s", text, error->message);
	assert_string_equal(spec.text, text);
	return spec;
}

#define spec_of(name, text) kymo_cleanup(kymo_spec_deinit) struct kymo_spec name = parse(text)

static inline void refused(const char *text, const char *message)
{
	struct kymo_spec spec, before;
	struct kymo_error *error;

	memset(&spec, 0x5a, sizeof(spec));
	before = spec;
	error = kymo_spec_parse(text, &spec);
	assert_non_null(error);
	assert_int_equal(error->code, KYMO_ERROR_USAGE);
	assert_string_equal(error->message, message);
	assert_memory_equal(&spec, &before, sizeof(spec));
	kymo_error_destroy(error);
}

static inline void assert_arg(const struct kymo_spec *spec, size_t i, const char *name, enum kymo_fetch_kind kind,
			      int64_t value, enum kymo_type type)
{
	assert_true(i < spec->n_args);
	assert_string_equal(spec->args[i].name, name);
	assert_int_equal(spec->args[i].fetch.kind, kind);
	assert_int_equal(spec->args[i].fetch.value, value);
	assert_string_equal(kymo_type_name(spec->args[i].fetch.type), kymo_type_name(type));
}

static inline int register_number(const char *name)
{
	enum kymo_type type;
	int number = kymo_register_parse(name, strlen(name), &type);

	assert_true(number >= 0);
	return number;
}

#endif
