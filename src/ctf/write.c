/*
 * The metadata file.
 */
#include "ctf/write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ctf/site.h"
#include "ctf/tables.h"
#include "ctf/trace.h"
#include "ctf/tsdl.h"
#include "ctf/write_type.h"
#include "wire/event.h"

#define TEMPORARY ".metadata.new"

static const char *const keywords[] = {
	"align",   "callsite", "char",           "clock",  "const",   "double",   "enum",
	"env",     "event",    "floating_point", "float",  "integer", "int",      "long",
	"short",   "signed",   "stream",         "string", "struct",  "trace",    "typealias",
	"typedef", "unsigned", "variant",        "void",   "_Bool",   "_Complex", "_Imaginary",
};

/* Keys that the writer sets itself. */
static const char *const reserved[] = { "kymo_format", "clock_invariant", "monotonic_offset_ns" };

static bool is_among(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static bool is_identifier(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

	return *name && strspn(name, letters) == strlen(name);
}

static struct kymo_error *check_env(const struct kymo_ctf_trace *trace)
{
	for (size_t i = 0; i < trace->n_env; i++) {
		const char *key = trace->env[i].key;

		if (!is_identifier(key) || (*key >= '0' && *key <= '9') ||
		    is_among(key, keywords, kymo_countof(keywords)) ||
		    is_among(key, reserved, kymo_countof(reserved)) || kymo_ctf_is_table_key(key))
			return kymo_error_create(KYMO_ERROR_FAILED, "'%s' cannot be a key of the trace's environment",
						 key);
	}
	return NULL;
}

/* Bytes have a field with their length, or whether they are there, which can't be another's name. */
static bool is_length_of(const char *name, const struct kymo_ctf_field *bytes)
{
	const size_t n = strlen(bytes->name);
	const char *ending = bytes->shape && !bytes->is_list ? "_present" : "_length";

	return bytes->type == KYMO_TYPE_BYTES && !strncmp(name, bytes->name, n) && !strcmp(name + n, ending);
}

static struct kymo_error *check_event(const struct kymo_ctf_event *event, bool is_packed)
{
	if (event->id > KYMO_EVENT_ID_MAX)
		return kymo_error_create(KYMO_ERROR_FAILED, "%s: event id %u is over %u; record fewer probes at once",
					 event->name, event->id, KYMO_EVENT_ID_MAX);
	if (!event->id && is_packed)
		return kymo_error_create(KYMO_ERROR_FAILED, "%s: event id 0 is that of threads", event->name);
	if (kymo_ctf_n_values(event) > KYMO_EVENT_MAX_ARGS)
		return kymo_error_create(KYMO_ERROR_USAGE, "%s: %u arguments; at most %d can be recorded", event->name,
					 event->n_fields, KYMO_EVENT_MAX_ARGS);
	for (uint32_t i = 0; i < kymo_ctf_n_values(event); i++) {
		const char *name = event->fields[i].name;

		if (!is_identifier(name))
			return kymo_error_create(KYMO_ERROR_USAGE, "%s: '%s' is no name for an argument", event->name,
						 name);
		for (uint32_t j = 0; j < i; j++)
			if (!strcmp(event->fields[j].name, name) || is_length_of(name, &event->fields[j]) ||
			    is_length_of(event->fields[j].name, &event->fields[i]))
				return kymo_error_create(KYMO_ERROR_USAGE, "%s: two arguments are named '%s'",
							 event->name, name);
	}
	return NULL;
}

static struct kymo_error *check_trace(const struct kymo_ctf_trace *trace)
{
	kymo_cleanup_free uint8_t *seen = calloc((KYMO_EVENT_ID_MAX + 1) / 8, 1);
	struct kymo_error *error = check_env(trace);

	if (!seen && !error)
		error = &kymo_error_no_memory;
	if (!trace->clock_frequency && !error)
		error = kymo_error_create(KYMO_ERROR_FAILED, "the trace's clock has no frequency");
	for (size_t i = 0; i < trace->n_events && !error; i++) {
		uint32_t id = trace->events[i].id;

		error = check_event(&trace->events[i], trace->is_packed);
		if (!error && (seen[id / 8] & 1u << id % 8))
			error = kymo_error_create(KYMO_ERROR_FAILED, "%s: event id %u is used twice",
						  trace->events[i].name, id);
		if (!error)
			seen[id / 8] |= (uint8_t)(1u << id % 8);
	}
	return error;
}

static void write_uuid(FILE *out, const uint8_t *uuid)
{
	putc('"', out);
	for (int i = 0; i < 16; i++)
		fprintf(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	putc('"', out);
}

static void write_key(FILE *out, const char *key, const char *value)
{
	fprintf(out, "\t%s = ", key);
	kymo_tsdl_string(out, value);
	fputs(";\n", out);
}

static void write_env(FILE *out, const struct kymo_ctf_trace *trace)
{
	char key[TABLE_KEY];

	fprintf(out, "env {\n\tkymo_format = %d;\n\tclock_invariant = %d;\n\tmonotonic_offset_ns = %" PRId64 ";\n",
		trace->is_packed ? KYMO_TSDL_FORMAT_PACKED : KYMO_TSDL_FORMAT, trace->clock_is_invariant,
		trace->monotonic_offset_ns);
	for (size_t i = 0; i < trace->n_env; i++)
		write_key(out, trace->env[i].key, trace->env[i].value);
	for (size_t i = 0; i < trace->n_processes; i++) {
		kymo_ctf_process_key(&trace->processes[i], key);
		write_key(out, key, trace->processes[i].command);
	}
	for (size_t i = 0; i < trace->n_threads; i++) {
		kymo_ctf_thread_key(trace, &trace->threads[i], key);
		write_key(out, key, trace->threads[i].comm);
	}
	fputs("};\n", out);
}

static void write_clock(FILE *out, const struct kymo_ctf_trace *trace)
{
	fputs("clock {\n\tname = kymo;\n\tuuid = ", out);
	write_uuid(out, trace->uuid);
	fprintf(out, ";\n\tdescription = \"time stamp counter%s\";\n",
		trace->clock_is_invariant ? "" : ", not invariant");
	fprintf(out,
		"\tfreq = %" PRIu64 ";\n\toffset_s = %" PRIu64 ";\n\toffset = %" PRIu64 ";\n\tabsolute = TRUE;\n};\n",
		trace->clock_frequency, trace->clock_offset_s, trace->clock_offset);
}

static void write_structure(FILE *out, const struct kymo_ctf_field *field)
{
	if (!field->is_list)
		fprintf(out,
			"\t\t" KYMO_TSDL_PRESENT_TYPE " _%s_present;\n\t\tvariant <_%s_present> { struct { } absent; ",
			field->name, field->name);
	else
		fprintf(out, "\t\tu16 _%s_length;\n\t\t", field->name);
	kymo_tsdl_shape(out, field->shape);
	if (!field->is_list)
		fprintf(out, " present; } _%s;\n", field->name);
	else
		fprintf(out, " _%s[_%s_length];\n", field->name, field->name);
}

static void write_field(FILE *out, const struct kymo_ctf_field *field)
{
	const bool is_bytes = field->type == KYMO_TYPE_BYTES;

	if (field->shape) {
		write_structure(out, field);
		return;
	}
	if (is_bytes)
		fprintf(out, "\t\tu16 _%s_length;\n", field->name);
	fputs("\t\t", out);
	kymo_tsdl_type(out, is_bytes ? kymo_element_type(field->array_of) : field->type, field->naming);
	fprintf(out, is_bytes ? " _%s[_%s_length];\n" : " _%s;\n", field->name, field->name);
}

static void write_event(FILE *out, const struct kymo_ctf_event *event)
{
	fputs("event {\n\tname = ", out);
	kymo_tsdl_string(out, event->name);
	fprintf(out, ";\n\tid = %" PRIu32 ";\n\tstream_id = 0;\n", event->id);
	if (kymo_ctf_has_site(event)) {
		fputs("\tmodel.emf.uri = \"", out);
		kymo_ctf_write_site(out, event);
		fputs("\";\n", out);
	}
	if (event->has_faults)
		fputs(KYMO_TSDL_FAULTS, out);
	fputs("\tfields := struct {\n", out);
	for (uint32_t i = 0; i < event->n_fields; i++)
		write_field(out, &event->fields[i]);
	if (event->has_stack)
		fputs("\t\t/* the innermost frame of the stack */\n\t\tu32 _" KYMO_STACK_FIELD ";\n", out);
	if (event->has_stack_pointer)
		fputs("\t\t/* the stack pointer, where it leads to the return address */\n\t\tx64 "
		      "_" KYMO_STACK_POINTER_FIELD ";\n",
		      out);
	fputs("\t};\n};\n", out);
}

/* Also as elements. */
static bool has_fields_of(const struct kymo_ctf_trace *trace, enum kymo_type type)
{
	for (size_t i = 0; i < trace->n_events; i++)
		for (uint32_t j = 0; j < trace->events[i].n_fields; j++) {
			const struct kymo_ctf_field *field = &trace->events[i].fields[j];

			if (field->type == type || (field->array_of && kymo_element_type(field->array_of) == type) ||
			    (field->shape && kymo_type_is_real(type) &&
			     kymo_shape_has_float(field->shape, kymo_type_size(type))))
				return true;
		}
	return false;
}

static void write_whole_metadata(FILE *out, const struct kymo_ctf_trace *trace)
{
	fputs("/* CTF 1.8 */\n" KYMO_TSDL_TYPES, out);
	if (has_fields_of(trace, KYMO_TYPE_F64))
		fputs(KYMO_TSDL_F64, out);
	if (has_fields_of(trace, KYMO_TYPE_F32))
		fputs(KYMO_TSDL_F32, out);
	fputs(KYMO_TSDL_TRACE_HEAD, out);
	write_uuid(out, trace->uuid);
	fputs(KYMO_TSDL_TRACE_TAIL, out);
	write_env(out, trace);
	write_clock(out, trace);
	fputs(KYMO_TSDL_STREAM, out);
	fputs(trace->is_packed ? KYMO_TSDL_PACKED : KYMO_TSDL_PLAIN, out);
	for (size_t i = 0; i < trace->n_events; i++)
		if (kymo_ctf_has_records(&trace->events[i]))
			write_event(out, &trace->events[i]);
}

/* Write and close; a negative errno where the disk did not take it all. */
static int write_to(int dirfd, const struct kymo_ctf_trace *trace)
{
	kymo_cleanup_close int fd =
		openat(dirfd, TEMPORARY, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *out;
	bool failed;

	if (fd < 0 || fchmod(fd, 0600))
		return -errno;
	out = fdopen(fd, "w");
	if (!out)
		return -errno;
	fd = -1;
	write_whole_metadata(out, trace);
	errno = 0;
	failed = fflush(out) || ferror(out);
	/* A short write shows in ferror() alone, its errno is long gone: the disk is the likely cause. */
	if (fclose(out) || failed)
		return errno ? -errno : -ENOSPC;
	return 0;
}

struct kymo_error *kymo_ctf_write_metadata(int dirfd, const struct kymo_ctf_trace *trace)
{
	struct kymo_error *error = check_trace(trace);
	int err;

	if (error)
		return error;
	err = write_to(dirfd, trace);
	if (!err && renameat(dirfd, TEMPORARY, dirfd, "metadata"))
		err = -errno;
	if (!err)
		return NULL;
	unlinkat(dirfd, TEMPORARY, 0);
	return kymo_error_errno(err, "cannot write the trace's metadata");
}
