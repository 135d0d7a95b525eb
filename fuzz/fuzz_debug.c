/*
 * Any bytes as an ELF file with debug information: variables, types, members, lines and instances of what it tells, at
 * places of its code. What comes back keeps what debug.h promises: forms are sound, strings end, sizes add up.
 */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/shape.h"
#include "expr/shape.h"
#include "fuzz.h"
#include "sym/debug.h"
#include "sym/functions.h"
#include "sym/open.h"
#include "sym/sym.h"
#include "wire/ctype.h"

enum { PLACES = 24, DEPTH = 3, MEMBERS = 64 };

static struct kymo_error *parts(void *data, const struct kymo_ctype *type, const struct kymo_ctype_member **ret,
				size_t *n_ret)
{
	return kymo_debug_parts(data, type, ret, n_ret);
}

static struct kymo_error *enumerators(void *data, const struct kymo_ctype *type,
				      const struct kymo_ctype_enumerator **ret, size_t *n_ret)
{
	return kymo_debug_enumerators(data, type, ret, n_ret);
}

/* All members of a shape lie within it. */
static void see_shape(struct kymo_debug *debug, const struct kymo_ctype *type)
{
	const struct kymo_expr_names names = { .parts = parts, .enumerators = enumerators, .data = debug };
	const struct kymo_shape_limits limits = { .depth = KYMO_SHAPE_DEPTH_MAX, .size = KYMO_SHAPE_SIZE_MAX };
	struct kymo_shape *shape = NULL;

	kymo_error_destroy(kymo_expr_shape(&names, kymo_expr_type_of(type), limits, &shape));
	check(!shape || (shape->size && shape->size <= KYMO_SHAPE_SIZE_MAX && shape->n <= KYMO_SHAPE_MEMBERS_MAX));
	for (uint32_t i = 0; shape && i < shape->n; i++)
		check(shape->members[i].bit + shape->members[i].n_bits <= 8 * shape->size &&
		      shape->members[i].shape->size <= shape->size);
	kymo_shape_release(shape);
}

static void see_enumerator(struct kymo_debug *debug, const char *name)
{
	struct kymo_ctype_enumerator found;
	const struct kymo_ctype *type;
	char qualified[64];
	bool is_one;

	kymo_error_destroy(kymo_debug_enumerator(debug, 0x1000, name, strlen(name), &type, &found, &is_one));
	check(!type || (type->kind == KYMO_CTYPE_ENUM && found.name));
	snprintf(qualified, sizeof(qualified), "a::%s", name);
	kymo_error_destroy(kymo_debug_enumerator(debug, 0x1000, qualified, strlen(qualified), &type, &found, &is_one));
}

static void see_type(struct kymo_debug *debug, const struct kymo_ctype *type, int depth)
{
	const struct kymo_ctype_enumerator *enumerators;
	const struct kymo_ctype_member *members;
	struct kymo_error *error;
	size_t n;

	check(type && type->name);
	for (int i = 0; type && i < 100; i++) {
		check(strlen(type->name) < 4096);
		error = kymo_debug_members(debug, type, &members, &n);
		for (size_t k = 0; !error && k < n && k < MEMBERS; k++) {
			check(members[k].bit_size <= 64 && members[k].bit_shift < 64);
			if (depth < DEPTH)
				see_type(debug, members[k].type, depth + 1);
		}
		kymo_error_destroy(error);
		error = kymo_debug_enumerators(debug, type, &enumerators, &n);
		for (size_t k = 0; !error && k < n; k++) {
			check(enumerators[k].name);
			if (k < MEMBERS)
				see_enumerator(debug, enumerators[k].name);
		}
		kymo_error_destroy(error);
		see_shape(debug, type);
		type = type->of;
	}
}

static void see_variables(struct kymo_debug *debug, uint64_t vaddr)
{
	const struct kymo_variable *variables, *global;
	struct kymo_error *error;
	size_t n;

	error = kymo_debug_variables(debug, vaddr, &variables, &n);
	for (size_t i = 0; !error && i < n && i < MEMBERS; i++) {
		const struct kymo_location *location = &variables[i].location;

		check(location->kind != KYMO_LOCATION_NOWHERE || location->why);
		check(location->kind == KYMO_LOCATION_NOWHERE || kymo_form_check(&location->form, 16, 0));
		check(variables[i].name && variables[i].declared_type);
		see_type(debug, variables[i].type, 0);
		kymo_error_destroy(
			kymo_debug_global(debug, vaddr, variables[i].name, strlen(variables[i].name), &global));
	}
	kymo_error_destroy(error);
}

static void see_lines(struct kymo_debug *debug, uint64_t vaddr)
{
	const struct kymo_instance *instances;
	const struct kymo_source_line *lines, *found;
	const struct kymo_label *labels;
	const struct kymo_ctype *type;
	enum kymo_returned returned;
	struct kymo_error *error;
	struct kymo_source_line line;
	const char *const *paths;
	struct kymo_source_frame frames[KYMO_SOURCE_FRAMES_MAX];
	size_t n, n_found;

	error = kymo_debug_function_lines(debug, vaddr, &lines, &n);
	for (size_t i = 0; !error && i < n && i < 4; i++) {
		kymo_error_destroy(kymo_debug_lines(debug, lines[i].file, lines[i].line, &found, &n_found));
		kymo_error_destroy(kymo_debug_sources(debug, lines[i].file, &paths, &n_found));
	}
	kymo_error_destroy(error);
	if (kymo_debug_line_of(debug, vaddr, &line) && line.function)
		kymo_error_destroy(kymo_debug_instances(debug, line.function, strlen(line.function), &instances, &n));
	error = kymo_debug_labels(debug, vaddr, &labels, &n);
	for (size_t i = 0; !error && i < n; i++)
		check(labels[i].name);
	kymo_error_destroy(error);
	kymo_error_destroy(kymo_debug_return_type(debug, vaddr, &type, &returned));
	n = kymo_debug_frames(debug, vaddr, frames);
	check(n <= KYMO_SOURCE_FRAMES_MAX);
	for (size_t i = 0; i < n; i++)
		check(frames[i].is_inlined == (i + 1 < n) && !frames[i].file == !frames[i].line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	kymo_cleanup_close int fd = fuzz_file(data, size);
	const struct kymo_function *functions;
	struct kymo_module *module;
	struct kymo_debug *debug;
	struct kymo_error *error;
	char path[64];
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	error = fd < 0 ? NULL : kymo_module_open(path, &module);
	kymo_error_destroy(error);
	if (fd < 0 || error)
		return 0;
	error = kymo_debug_open(module, path, &debug);
	if (!error) {
		kymo_error_destroy(kymo_module_functions(module, &functions, &n));
		for (size_t i = 0; i < n && i < PLACES; i++) {
			see_variables(debug, functions[i].start);
			see_variables(debug, functions[i].start + (functions[i].end - functions[i].start) / 2);
			see_lines(debug, functions[i].start);
		}
		kymo_debug_close(debug);
	}
	kymo_error_destroy(error);
	kymo_module_close(module);
	return 0;
}
