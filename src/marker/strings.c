#include "marker/strings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "marker/format.h"
#include "marker/marker.h"
#include "marker/reader.h"
#include "sym/module.h"

#define BLOCK_SIZE 65536u
#define TOTAL_MAX (64u << 20)

static struct kymo_error *reserve_bytes(struct marker_reader *reader, size_t size, char **ret)
{
	struct marker_strings *strings = reader->strings;
	char *block;

	if (size > TOTAL_MAX - strings->total)
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s: its markers have more than %u MiB of text",
					 kymo_module_path(reader->module), TOTAL_MAX >> 20);
	if (!strings->blocks.n || size > BLOCK_SIZE - strings->used) {
		block = malloc(size > BLOCK_SIZE ? size : BLOCK_SIZE);
		if (!block || !kymo_vec_push(&strings->blocks, block)) {
			free(block);
			return &kymo_error_no_memory;
		}
		strings->used = 0;
	}
	*ret = strings->blocks.items[strings->blocks.n - 1] + strings->used;
	/* A block of a text that is larger counts as full. */
	strings->used = size > BLOCK_SIZE ? BLOCK_SIZE : strings->used + size;
	strings->total += size;
	return NULL;
}

struct kymo_error *marker_copy(struct marker_reader *reader, const char *text, size_t length, char **ret)
{
	struct kymo_error *error = reserve_bytes(reader, length + 1, ret);

	if (error)
		return error;
	memcpy(*ret, text, length);
	(*ret)[length] = '\0';
	return NULL;
}

struct kymo_error *marker_copy_names(struct marker_reader *reader, const struct kymo_marker_fields *fields,
				     struct kymo_marker *marker)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < marker->n_fields && !error; i++)
		error = marker_copy(reader, fields->names[i], strlen(fields->names[i]), &marker->fields[i].name);
	return error;
}

struct kymo_error *marker_print(struct marker_reader *reader, char **ret, const char *format, ...)
{
	kymo_cleanup_free char *text = NULL;
	va_list args;

	va_start(args, format);
	text = kymo_format(format, args);
	va_end(args);
	return text ? marker_copy(reader, text, strlen(text), ret) : &kymo_error_no_memory;
}

void marker_strings_destroy(struct marker_strings *strings)
{
	if (!strings)
		return;
	for (size_t i = 0; i < strings->blocks.n; i++)
		free(strings->blocks.items[i]);
	kymo_vec_deinit(&strings->blocks);
	free(strings);
}
