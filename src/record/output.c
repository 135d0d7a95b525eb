#include "record/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define WALKED 128	/* records of a packet that are looked at */

/* ---- the directory ------------------------------------------------------------------------------------------------- */

#define UNFINISHED ".metadata.new"	/* kymo_ctf_write_metadata() renames it when it is whole */

/* Without files, but for the one that a recorder was writing first of all when it was killed. */
static bool is_empty(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *entry;
	bool empty = true;

	if (!dir)
		return false;
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && strcmp(entry->d_name, UNFINISHED))
			empty = false;
	closedir(dir);
	return empty;
}

/* A recording has a metadata file that begins as CTF's does; an empty directory is as good. */
static bool is_recording(const char *path)
{
	static const char mark[] = "/* CTF 1.8";
	kymo_cleanup_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	kymo_cleanup_close int metadata = -1;
	char begin[sizeof(mark)];

	if (fd < 0)
		return false;
	if (is_empty(fd))
		return true;
	metadata = openat(fd, "metadata", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return metadata >= 0 && read(metadata, begin, sizeof(mark) - 1) == sizeof(mark) - 1 &&
	       !memcmp(begin, mark, sizeof(mark) - 1);
}

/* Remove a recording: its files, then itself. Directories inside are not kymo's and make it fail. */
static struct kymo_error *remove_recording(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir)
		return kymo_error_errno(errno, "cannot open %s", path);
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
	return rmdir(path) ? kymo_error_errno(errno, "cannot remove the earlier recording %s", path) : NULL;
}

static struct kymo_error *in_the_way(const char *path)
{
	return kymo_error_create(KYMO_ERROR_FAILED, "%s exists and is not a recording of kymo's; choose another directory with -o", path);
}

/* `has_old_ret`: there is an earlier recording at `path`, and at `old` one before it. */
static struct kymo_error *look(const char *path, const char *old, bool *has_ret, bool *has_old_ret)
{
	struct stat st;

	*has_ret = *has_old_ret = false;
	if (lstat(path, &st))
		return errno == ENOENT ? NULL : kymo_error_errno(errno, "cannot look at %s", path);
	if (!is_recording(path))
		return in_the_way(path);
	*has_ret = true;
	if (lstat(old, &st))
		return NULL;
	if (!is_recording(old))
		return in_the_way(old);
	*has_old_ret = true;
	return NULL;
}

static struct kymo_error *move_earlier(const char *path, const char *old)
{
	bool has, has_old;
	struct kymo_error *error = look(path, old, &has, &has_old);

	if (!error && has_old)
		error = remove_recording(old);
	if (!error && has && rename(path, old))
		error = kymo_error_errno(errno, "cannot move the earlier recording %s to %s", path, old);
	return error;
}

/* Without slashes at the end, and with ".old". */
static struct kymo_error *names(const char *path, char **ret, char **old_ret)
{
	size_t size = strlen(path);

	while (size > 1 && path[size - 1] == '/')
		size--;
	*ret = strndup(path, size);
	if (!*ret)
		return &kymo_error_no_memory;
	if (asprintf(old_ret, "%s.old", *ret) < 0)
		*old_ret = NULL;
	return *old_ret ? NULL : &kymo_error_no_memory;
}

struct kymo_error *output_check(const char *path)
{
	kymo_cleanup_free char *name = NULL, *old = NULL, *copy = NULL;
	struct kymo_error *error = names(path, &name, &old);
	bool has, has_old;

	if (!error)
		error = look(name, old, &has, &has_old);
	if (error)
		return error;
	copy = strdup(name);
	if (!copy)
		return &kymo_error_no_memory;
	return access(dirname(copy), W_OK | X_OK) ? kymo_error_errno(errno, "cannot make the directory %s", path) : NULL;
}

struct kymo_error *output_init(const char *path, struct output *ret)
{
	struct output output = { .dirfd = -1 };
	kymo_cleanup_free char *old = NULL;
	struct kymo_error *error = names(path, &output.path, &old);

	if (!error)
		error = move_earlier(output.path, old);
	if (!error && mkdir(output.path, 0777))
		error = kymo_error_errno(errno, "cannot make the directory %s", path);
	if (!error) {
		output.dirfd = open(output.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (output.dirfd < 0)
			error = kymo_error_errno(errno, "cannot open %s", path);
	}
	if (!error && getrandom(output.trace.uuid, sizeof(output.trace.uuid), 0) != sizeof(output.trace.uuid))
		error = kymo_error_errno(errno, "no random numbers for the trace's uuid");
	if (error) {
		output_deinit(&output);
		return error;
	}
	*ret = output;
	return NULL;
}

void output_deinit(struct output *output)
{
	for (size_t i = 0; i < output->n_streams; i++)
		kymo_ctf_stream_destroy(output->streams[i]);
	free(output->streams);
	free(output->sequences);
	free(output->written_lost);
	free(output->last_tsc);
	free(output->sizes);
	kymo_ctf_trace_deinit(&output->trace);
	if (output->dirfd >= 0)
		close(output->dirfd);
	free(output->path);
	*output = (struct output){ .dirfd = -1 };
}

/* ---- streams ------------------------------------------------------------------------------------------------------- */

struct kymo_error *output_rings(struct output *output, size_t n)
{
	output->streams = calloc(n, sizeof(*output->streams));
	output->sequences = calloc(n, sizeof(*output->sequences));
	output->written_lost = calloc(n, sizeof(*output->written_lost));
	output->last_tsc = calloc(n, sizeof(*output->last_tsc));
	if (!output->streams || !output->sequences || !output->written_lost || !output->last_tsc)
		return &kymo_error_no_memory;
	output->n_streams = n;
	return NULL;
}

struct kymo_error *output_sizes(struct output *output)
{
	const struct kymo_ctf_trace *trace = &output->trace;
	uint32_t most = 0, *sizes;

	for (size_t i = 0; i < trace->n_events; i++)
		if (trace->events[i].id > most)
			most = trace->events[i].id;
	sizes = realloc(output->sizes, (most + 1) * sizeof(*sizes));
	if (!sizes)
		return &kymo_error_no_memory;
	memset(sizes, 0, (most + 1) * sizeof(*sizes));
	for (size_t i = 0; i < trace->n_events; i++)
		sizes[trace->events[i].id] = trace->events[i].size;
	output->sizes = sizes;
	output->n_sizes = most + 1;
	return NULL;
}

/*
 * How many records a packet has, for the line that lives: the first ones are walked over, the rest is taken to be of the same sizes. Exact for
 * packets of few records; the report counts for good.
 */
static uint64_t about_events(const struct output *output, const struct kymo_ring_packet *packet)
{
	uint64_t at = 0, n = 0;

	while (n < WALKED && at + sizeof(uint64_t) <= packet->size) {
		uint64_t header;
		uint32_t id;

		memcpy(&header, packet->records + at, sizeof(header));
		id = (uint32_t)(header & KYMO_EVENT_ID_MAX);
		if (id >= output->n_sizes || !output->sizes[id])
			return n;
		at += output->sizes[id];
		n++;
	}
	return at ? n * packet->size / at : 0;
}

static struct kymo_error *append(struct output *output, size_t i, uint32_t cpu, const struct kymo_ring_packet *packet)
{
	struct kymo_error *error = NULL;
	uint64_t begin = packet->tsc_begin, end = packet->tsc_end;
	char name[32];

	/*
	 * Each stream begins with an empty packet: readers tell losses by comparing a packet with the one before it, so without that they would not see
	 * what was lost or overwritten before the first.
	 */
	if (!output->streams[i]) {
		snprintf(name, sizeof(name), "stream_%zu", i);
		error = kymo_ctf_stream_create(output->dirfd, name, output->trace.uuid, cpu, &output->streams[i]);
		if (!error)
			error = kymo_ctf_stream_append(output->streams[i], packet->records, 0, begin, begin, 0, 0);
	}
	/* What a healthy target writes is in order; a reader must not stumble over what a lying one does. */
	if (begin < output->last_tsc[i])
		begin = output->last_tsc[i];
	if (end < begin)
		end = begin;
	if (!error)
		error = kymo_ctf_stream_append(output->streams[i], packet->records, packet->size, begin, end, packet->lost,
					       packet->sequence + 1);
	if (error)
		return error;
	output->last_tsc[i] = end;
	output->sequences[i] = packet->sequence + 1;
	output->written_lost[i] = packet->lost;
	output->bytes += packet->size;
	output->events += about_events(output, packet);
	return NULL;
}

struct kymo_error *output_drain(struct output *output, size_t i, struct kymo_ring *ring, uint32_t cpu, size_t *n_ret)
{
	struct kymo_ring_packet packet;
	size_t n = 0;

	/* One round: a producer that is as fast as this must not keep the other rings waiting, or the end of the recording. */
	while (n < ring->n_subbuffers && kymo_ring_peek(ring, &packet)) {
		struct kymo_error *error = append(output, i, cpu, &packet);

		if (error)
			return error;
		kymo_ring_release(ring);
		n++;
	}
	*n_ret = n;
	return NULL;
}

struct kymo_error *output_finish(struct output *output, size_t i, const struct kymo_ring *ring, uint32_t cpu, uint64_t tsc)
{
	struct kymo_ring_packet packet = {
		.records = ring->data,
		.tsc_begin = output->last_tsc[i] ? output->last_tsc[i] : tsc,
		.tsc_end = tsc,
		.lost = kymo_ring_lost(ring),
		.sequence = output->sequences[i],
	};

	return packet.lost > output->written_lost[i] ? append(output, i, cpu, &packet) : NULL;
}

struct kymo_error *output_metadata(struct output *output)
{
	return kymo_ctf_write_metadata(output->dirfd, &output->trace);
}
