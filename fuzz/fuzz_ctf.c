/*
 * Traces. The input is metadata, a NUL, and a stream's bytes. Where the metadata is not readable, the bytes are read
 * with good metadata, so that both parsers are reached; packets along the chain of their sizes get the magic number and
 * the uuid that no fuzzer guesses.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "ctf/ctf.h"
#include "report/branches.h"
#include "report/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char directory[4096];
static int dir_fd = -1;

static void remove_directory(void)
{
	unlinkat(dir_fd, "metadata", 0);
	unlinkat(dir_fd, "stream", 0);
	close(dir_fd);
	rmdir(directory);
}

static void make_directory(void)
{
	const char *tmp = getenv("TMPDIR");

	if (!tmp || !*tmp)
		tmp = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
	snprintf(directory, sizeof(directory), "%s/kymo-fuzz-XXXXXX", tmp);
	if (!mkdtemp(directory))
		abort();
	dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		abort();
	atexit(remove_directory);
}

static void write_file(const char *name, const void *data, size_t size)
{
	kymo_cleanup_close int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || kymo_write_all(fd, data, size))
		abort();
}

static void write_good_metadata(uint8_t *uuid)
{
	struct kymo_ctf_field fields[] = {
		{ (char *)"a", KYMO_TYPE_U8, NULL, 0, NULL, false },
		{ (char *)"b", KYMO_TYPE_S16, NULL, 0, NULL, false },
		{ (char *)"c", KYMO_TYPE_S64, kymo_naming_truth(), 0, NULL, false },
		{ (char *)"d", KYMO_TYPE_X32, NULL, 0, NULL, false },
	};
	struct kymo_ctf_field marked[] = {
		{ (char *)"a", KYMO_TYPE_STRING, NULL, 0, NULL, false },
		{ (char *)"b", KYMO_TYPE_U8, kymo_naming_characters(), 0, NULL, false },
		{ (char *)"c", KYMO_TYPE_F64, NULL, 0, NULL, false },
		{ (char *)"d", KYMO_TYPE_STRING, NULL, 0, NULL, false },
	};
	struct kymo_ctf_field call[] = {
		{ (char *)"arg1", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"arg2", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"arg3", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"arg4", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"arg5", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"arg6", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"sp", KYMO_TYPE_X64, NULL, 0, NULL, false },
		{ (char *)"memory", KYMO_TYPE_BYTES, NULL, 0, NULL, false },
	};
	struct kymo_ctf_field back[] = {
		{ (char *)"result", KYMO_TYPE_S64, NULL, 0, NULL, false },
		{ (char *)"number", KYMO_TYPE_S64, NULL, 0, NULL, false },
		{ (char *)"memory", KYMO_TYPE_BYTES, NULL, 0, NULL, false },
	};
	struct kymo_ctf_event events[] = {
		{ .id = 0, .name = (char *)"zero", .kind = KYMO_CTF_ENTRY },
		{ .id = 1, .name = (char *)"one", .fields = fields, .n_fields = 2 },
		{ .id = 2, .name = (char *)"two", .kind = KYMO_CTF_RETURN },
		{ .id = 3, .name = (char *)"three", .kind = KYMO_CTF_ENTRY, .function_offset = 1 },
		{ .id = 4,
		  .name = (char *)"four",
		  .fields = fields,
		  .n_fields = 1,
		  .has_faults = true,
		  .kind = KYMO_CTF_RETURN,
		  .function_offset = 1 },
		{ .id = 5, .name = (char *)"five", .fields = fields, .n_fields = 4, .has_faults = true },
		{ .id = 6, .name = (char *)"mark", .fields = marked, .n_fields = 4, .kind = KYMO_CTF_MARKER },
		{ .id = 7,
		  .name = (char *)"mark",
		  .fields = marked,
		  .n_fields = 4,
		  .kind = KYMO_CTF_MARKER,
		  .offset = 1 },
		{ .id = 8,
		  .name = (char *)"eight",
		  .fields = marked,
		  .n_fields = 2,
		  .has_faults = true,
		  .kind = KYMO_CTF_ENTRY,
		  .function_offset = 2 },
		{ .id = 9,
		  .name = (char *)"nine",
		  .fields = marked,
		  .n_fields = 1,
		  .kind = KYMO_CTF_RETURN,
		  .function_offset = 2 },
		{ .id = 10,
		  .name = (char *)"syscall:openat",
		  .fields = call,
		  .n_fields = 8,
		  .has_faults = true,
		  .kind = KYMO_CTF_SYSCALL,
		  .offset = SYS_openat },
		{ .id = 11,
		  .name = (char *)"syscall:recvmsg",
		  .fields = call,
		  .n_fields = 8,
		  .has_faults = true,
		  .kind = KYMO_CTF_SYSCALL,
		  .offset = SYS_recvmsg },
		{ .id = 12,
		  .name = (char *)"syscall:exit",
		  .fields = call,
		  .n_fields = 8,
		  .has_faults = true,
		  .kind = KYMO_CTF_SYSCALL,
		  .offset = SYS_exit },
		{ .id = 13,
		  .name = (char *)"syscall:return",
		  .fields = back,
		  .n_fields = 3,
		  .has_faults = true,
		  .kind = KYMO_CTF_SYSRET },
	};
	struct kymo_ctf_thread threads[] = {
		{ .tid = 0, .comm = (char *)"a" },
		{ .tid = 0, .pid = 1, .begin = 1000, .comm = (char *)"b" },
		{ .tid = 1, .pid = 1, .comm = (char *)"c" },
	};
	struct kymo_ctf_process processes[] = {
		{ .pid = 0, .command = (char *)"d" },
		{ .pid = 1, .command = (char *)"e" },
		{ .pid = 1, .begin = 2000, .command = (char *)"f" },
	};
	struct kymo_ctf_trace trace = {
		.clock_frequency = 3000000000,
		.clock_offset_s = 1700000000,
		.events = events,
		.n_events = kymo_countof(events),
		.threads = threads,
		.n_threads = kymo_countof(threads),
		.processes = processes,
		.n_processes = kymo_countof(processes),
	};
	struct kymo_error *error = kymo_ctf_write_metadata(dir_fd, &trace);

	if (error)
		abort();
	memset(uuid, 0, 16);
}

/* What is parsed must be written, unless the writer refuses it. Parsed again it must have the same number of events and
 * entries of the tables. */
static void check_round_trip(const struct kymo_ctf_trace *trace)
{
	struct kymo_error *error = kymo_ctf_write_metadata(dir_fd, trace);
	struct kymo_ctf_trace again;
	kymo_cleanup_free char *text = NULL;
	size_t size;

	if (error) {
		kymo_error_destroy(error);
		return;
	}
	if (kymo_read_file(dir_fd, "metadata", 64u << 20, &text, &size))
		abort();
	error = kymo_ctf_parse_metadata(text, size, &again);
	if (error || again.n_events != trace->n_events || again.n_env != trace->n_env ||
	    again.n_threads != trace->n_threads || again.n_processes != trace->n_processes)
		abort();
	for (size_t i = 0; i < trace->n_events; i++)
		if (again.events[i].size != trace->events[i].size || again.events[i].kind != trace->events[i].kind)
			abort();
	kymo_ctf_trace_deinit(&again);
}

/* Returns whether the trace's directory has readable metadata of the input's. */
static bool take_metadata(const char *text, size_t size, uint8_t *uuid)
{
	struct kymo_ctf_trace trace;
	struct kymo_error *error = kymo_ctf_parse_metadata(text, size, &trace);

	if (error) {
		kymo_error_destroy(error);
		return false;
	}
	memcpy(uuid, trace.uuid, 16);
	check_round_trip(&trace);
	kymo_ctf_trace_deinit(&trace);
	write_file("metadata", text, size);
	return true;
}

static void sign_packets(uint8_t *data, size_t size, const uint8_t *uuid)
{
	const uint32_t magic = KYMO_CTF_MAGIC;
	size_t at = 0;

	while (size - at >= sizeof(struct kymo_ctf_packet)) {
		struct kymo_ctf_packet packet;

		memcpy(data + at, &magic, sizeof(magic));
		memcpy(data + at + sizeof(magic), uuid, 16);
		memcpy(&packet, data + at, sizeof(packet));
		if (packet.packet_size < sizeof(packet) * 8 || packet.packet_size / 8 > size - at)
			break;
		at += packet.packet_size / 8;
	}
}

/* Nothing that commands a terminal gets through. */
static void check_safe(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)text[i] < 0x20 && text[i] != '\n')
			abort();
}

static void check_report(enum kymo_report_mode mode, unsigned int width, bool json)
{
	struct kymo_report_options options = {
		.mode = mode, .width = width, .unicode = width & 1, .all = true, .json = json, .raw = json && width & 1
	};
	kymo_cleanup_free char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	kymo_error_destroy(kymo_report(directory, &options, out));
	fclose(out);
	check_safe(text, size);
}

static void check_branches(bool json)
{
	const struct kymo_branches_view view = { .json = json, .addresses = !json };
	kymo_cleanup_free char *text = NULL;
	bool differ;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	kymo_error_destroy(kymo_report_branches(directory, &view, out));
	if (!json)
		kymo_error_destroy(kymo_report_crash(directory, &view, out));
	if (!json)
		kymo_error_destroy(kymo_report_branches_diff(directory, directory, &view, out, &differ));
	fclose(out);
	check_safe(text, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
	size_t text = nul ? (size_t)(nul - data) : size, rest = nul ? size - text - 1 : 0;
	kymo_cleanup_free uint8_t *stream = malloc(rest + 1);
	uint8_t uuid[16];

	if (!stream)
		return 0;
	if (dir_fd < 0)
		make_directory();
	if (!take_metadata((const char *)data, text, uuid))
		write_good_metadata(uuid);
	if (rest)
		memcpy(stream, nul + 1, rest);
	sign_packets(stream, rest, uuid);
	write_file("stream", stream, rest);
	for (int mode = KYMO_REPORT_SUMMARY; mode <= KYMO_REPORT_TREE; mode++)
		check_report((enum kymo_report_mode)mode, 20 + (unsigned int)(size % 150), false);
	check_report(KYMO_REPORT_EVENTS, 20 + (unsigned int)(size % 150), true);
	check_branches(false);
	check_branches(true);
	return 0;
}
