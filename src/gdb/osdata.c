/*
 * Columns and their names are those of gdbserver, which front ends read.
 *
 * Processes of other users are on these lists, and none of them may keep the stub:
 *
 * 1. A command line is memory of its process, and a read of it waits for the lock of that memory. A process holds this
 *    lock while it maps a file, and a file system that does not answer (FUSE) keeps it there. Before Linux 4.17 a page
 *    of such a file could itself be the command line. Only SIGKILL ends the wait. So the stub reads command lines only
 *    of processes whose four user ids are its own. The owner of /proc/PID is the effective one alone, which a set-uid
 *    program of another user has, too. What else is read of /proc takes no such lock.
 * 2. Of a command line COMMAND_MAX bytes are read. A list that has reached its limit ends with an item that has "..."
 *    in each column. So it is well formed, and says that items are left out.
 * 3. Whether the list is called off is asked at each process, thread and descriptor.
 */
#include "gdb/osdata.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/vec.h"
#include "gdb/osdata_list.h"
#include "gdb/osdata_machine.h"
#include "procfs/info.h"

enum { COMMAND_MAX = 4096, STAT_MAX = 4096, STATUS_MAX = 1 << 20, CPU_WORDS = 128 };
enum { GROUP_FIELD = 5, CORE_FIELD = 39 }; /* of proc(5) */

/* ---- reading /proc --------------------------------------------------------------------------- */

/* The next entry of a directory that is a number; -1: there is none. */
static int next_number(DIR *directory)
{
	struct dirent *entry;

	while (directory && (entry = readdir(directory)))
		if (*entry->d_name >= '0' && *entry->d_name <= '9')
			return atoi(entry->d_name);
	return -1;
}

static DIR *open_part(pid_t pid, const char *part)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, part);
	return opendir(path);
}

/* A field of /proc/PID/stat, from 3 on: the second one is a name, which may have blanks and parentheses. -1: the thread
 * is gone. */
static long read_field(pid_t tid, int field)
{
	kymo_cleanup_free char *text = NULL;
	char path[64], *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	if (kymo_read_file(AT_FDCWD, path, STAT_MAX, &text, NULL) || !(at = strrchr(text, ')')))
		return -1;
	for (int i = 2; at && i < field; i++)
		at = strchr(at + 1, ' ');
	return at ? strtol(at, NULL, 10) : -1;
}

/* All user ids of the process: real, effective, saved, and that for files. */
static bool is_own(int process)
{
	const unsigned int uid = geteuid();
	kymo_cleanup_free char *text = NULL;
	unsigned int ids[4];
	const char *at;

	if (kymo_read_file(process, "status", STATUS_MAX, &text, NULL) || !(at = strstr(text, "\nUid:")) ||
	    sscanf(at, "\nUid: %u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) != 4)
		return false;
	return ids[0] == uid && ids[1] == uid && ids[2] == uid && ids[3] == uid;
}

/* The beginning of a command line of the stub's own user, with a blank after each word; else 0. The directory of the
 * process is open, so the user and the line are of one process. */
static size_t read_command_line(pid_t pid, char ret[COMMAND_MAX + 1])
{
	kymo_cleanup_close int process = -1, file = -1;
	char path[64];
	size_t n = 0;
	ssize_t done;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (process < 0 || !is_own(process) || (file = openat(process, "cmdline", O_RDONLY | O_CLOEXEC)) < 0)
		return 0;
	while (n < COMMAND_MAX && (done = read(file, ret + n, COMMAND_MAX - n)) > 0)
		n += (size_t)done;
	for (size_t i = 0; i < n; i++)
		if (!ret[i])
			ret[i] = ' ';
	ret[n] = '\0';
	return n;
}

/* The name in brackets where there are no words. */
static void put_command_line(struct gdb_osdata_list *list, const char *name, pid_t pid)
{
	char comm[16], text[COMMAND_MAX + 1];

	if (!read_command_line(pid, text)) {
		gdb_osdata_read_command(pid, comm);
		snprintf(text, sizeof(text), "[%s]", comm);
	}
	gdb_osdata_put(list, name, text);
}

static void put_user(struct gdb_osdata_list *list, pid_t pid)
{
	struct stat file;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (stat(path, &file))
		gdb_osdata_put(list, "user", "?");
	else
		gdb_osdata_put_user(list, "user", file.st_uid, "?");
}

/* CPUs that a process' threads have run on last, in ascending order. */
static void put_cores(struct gdb_osdata_list *list, pid_t pid)
{
	kymo_cleanup_closedir DIR *threads = open_part(pid, "task");
	uint64_t seen[CPU_WORDS] = { 0 };
	struct gdb_text cores = { 0 };
	int tid;

	while (gdb_osdata_goes_on(list) && (tid = next_number(threads)) >= 0) {
		const long core = read_field(tid, CORE_FIELD);

		if (core >= 0 && core < 64 * CPU_WORDS)
			seen[core / 64] |= 1ull << core % 64;
	}
	for (int core = 0; core < 64 * CPU_WORDS; core++)
		if (seen[core / 64] & 1ull << core % 64)
			gdb_text_format(&cores, "%s%d", cores.n ? "," : "", core);
	gdb_text_bytes(&cores, "", 1);
	list->document->has_failed |= cores.has_failed;
	gdb_osdata_put(list, "cores", cores.has_failed ? "" : cores.items);
	gdb_text_deinit(&cores);
}

/* ---- the lists ------------------------------------------------------------------------------- */

static void list_types(struct gdb_osdata_list *list);

static void list_processes(struct gdb_osdata_list *list)
{
	kymo_cleanup_closedir DIR *processes = opendir("/proc");
	int pid;

	while (gdb_osdata_goes_on(list) && (pid = next_number(processes)) >= 0) {
		gdb_osdata_begin_item(list);
		gdb_osdata_put_number(list, "pid", pid);
		put_user(list, pid);
		put_command_line(list, "command", pid);
		put_cores(list, pid);
		gdb_osdata_end_item(list);
	}
}

struct member {
	long group;
	pid_t pid;
};

/* By group; its leader is the first. */
static int compare_members(const void *a, const void *b)
{
	const struct member *left = a, *right = b;
	const bool leads = left->group == left->pid, other_leads = right->group == right->pid;

	if (left->group != right->group)
		return left->group < right->group ? -1 : 1;
	if (leads != other_leads)
		return leads ? -1 : 1;
	return left->pid < right->pid ? -1 : 1;
}

static void list_groups(struct gdb_osdata_list *list)
{
	kymo_cleanup_closedir DIR *processes = opendir("/proc");
	KYMO_VEC(struct member) members = { 0 };
	char leader[16] = "";
	int pid;

	while (gdb_osdata_goes_on(list) && (pid = next_number(processes)) >= 0) {
		const struct member member = { read_field(pid, GROUP_FIELD), pid };

		/* Threads of the kernel are of group 0. */
		if (member.group > 0 && !kymo_vec_push(&members, member))
			list->document->has_failed = true;
	}
	if (members.n)
		qsort(members.items, members.n, sizeof(*members.items), compare_members);
	for (size_t i = 0; i < members.n && gdb_osdata_goes_on(list); i++) {
		const struct member *member = &members.items[i];

		if (!i || member->group != member[-1].group)
			gdb_osdata_read_command((pid_t)member->group, leader);
		gdb_osdata_begin_item(list);
		gdb_osdata_put_number(list, "pgid", member->group);
		gdb_osdata_put(list, "leader command", leader);
		gdb_osdata_put_number(list, "pid", member->pid);
		put_command_line(list, "command line", member->pid);
		gdb_osdata_end_item(list);
	}
	kymo_vec_deinit(&members);
}

static void list_threads_of(pid_t pid, struct gdb_osdata_list *list)
{
	kymo_cleanup_closedir DIR *threads = open_part(pid, "task");
	char command[16];
	int tid;

	gdb_osdata_read_command(pid, command);
	while (gdb_osdata_goes_on(list) && (tid = next_number(threads)) >= 0) {
		gdb_osdata_begin_item(list);
		gdb_osdata_put_number(list, "pid", pid);
		gdb_osdata_put(list, "command", command);
		gdb_osdata_put_number(list, "tid", tid);
		gdb_osdata_put_number(list, "core", read_field(tid, CORE_FIELD));
		gdb_osdata_end_item(list);
	}
}

static void list_threads(struct gdb_osdata_list *list)
{
	kymo_cleanup_closedir DIR *processes = opendir("/proc");
	int pid;

	while (gdb_osdata_goes_on(list) && (pid = next_number(processes)) >= 0)
		list_threads_of(pid, list);
}

static void list_files_of(pid_t pid, struct gdb_osdata_list *list)
{
	kymo_cleanup_closedir DIR *files = open_part(pid, "fd");
	char command[16];
	int fd;

	gdb_osdata_read_command(pid, command);
	while (gdb_osdata_goes_on(list) && (fd = next_number(files)) >= 0) {
		char number[16], name[PATH_MAX];
		ssize_t n;

		snprintf(number, sizeof(number), "%d", fd);
		n = readlinkat(dirfd(files), number, name, sizeof(name) - 1);
		name[n < 0 ? 0 : n] = '\0';
		gdb_osdata_begin_item(list);
		gdb_osdata_put_number(list, "pid", pid);
		gdb_osdata_put(list, "command", command);
		gdb_osdata_put_number(list, "file descriptor", fd);
		gdb_osdata_put(list, "name", n < 0 ? number : name);
		gdb_osdata_end_item(list);
	}
}

static void list_files(struct gdb_osdata_list *list)
{
	kymo_cleanup_closedir DIR *processes = opendir("/proc");
	int pid;

	while (gdb_osdata_goes_on(list) && (pid = next_number(processes)) >= 0)
		list_files_of(pid, list);
}

/* What is left of a text without blanks at its ends. */
static char *trim(char *text)
{
	size_t n;

	text += strspn(text, " \t\n");
	for (n = strlen(text); n && strchr(" \t\n", text[n - 1]); n--)
		;
	text[n] = '\0';
	return text;
}

/* "name : value"; the first line of each CPU is "processor". */
static void list_cpus(struct gdb_osdata_list *list)
{
	kymo_cleanup_fclose FILE *file = fopen("/proc/cpuinfo", "re");
	kymo_cleanup_free char *line = NULL;
	bool has_item = false;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0) {
		char *value = line, *name = trim(strsep(&value, ":"));

		if (!value)
			continue;
		if (!strcmp(name, "processor")) {
			if (!gdb_osdata_goes_on(list))
				break;
			if (has_item)
				gdb_osdata_end_item(list);
			gdb_osdata_begin_item(list);
			has_item = true;
		}
		if (has_item)
			gdb_osdata_put(list, name, trim(value));
	}
	if (has_item)
		gdb_osdata_end_item(list);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct {
	const char *type, *element, *title, *description;
	void (*list)(struct gdb_osdata_list *list);
} types[] = {
	{ "types", "types", "Types", "Listing of info os types you can list", list_types },
	{ "cpus", "cpus", "CPUs", "Listing of all cpus/cores on the system", list_cpus },
	{ "files", "files", "File descriptors", "Listing of all file descriptors", list_files },
	{ "modules", "modules", "Kernel modules", "Listing of all loaded kernel modules", gdb_list_modules },
	{ "msg", "message queues", "Message queues", "Listing of all message queues", gdb_list_queues },
	{ "processes", "processes", "Processes", "Listing of all processes", list_processes },
	{ "procgroups", "process groups", "Process groups", "Listing of all process groups", list_groups },
	{ "semaphores", "semaphores", "Semaphores", "Listing of all semaphores", gdb_list_semaphores },
	{ "shm", "shared memory", "Shared-memory regions", "Listing of all shared-memory regions", gdb_list_shared },
	{ "sockets", "sockets", "Internet-domain sockets", "Listing of all internet-domain sockets", gdb_list_sockets },
	{ "threads", "threads", "Threads", "Listing of all threads", list_threads },
};

/* All but this one. */
static void list_types(struct gdb_osdata_list *list)
{
	for (size_t i = 1; i < kymo_countof(types) && gdb_osdata_goes_on(list); i++) {
		gdb_osdata_begin_item(list);
		gdb_osdata_put(list, "Type", types[i].type);
		gdb_osdata_put(list, "Description", types[i].description);
		gdb_osdata_put(list, "Title", types[i].title);
		gdb_osdata_end_item(list);
	}
}

bool gdb_list_osdata(const struct gdb_words *type, const struct gdb_osdata_terms *terms, struct gdb_text *document)
{
	struct gdb_osdata_list list = { .document = document, .terms = terms };
	const size_t n = gdb_words_left(type);

	for (size_t i = 0; i < kymo_countof(types); i++) {
		if (n && (strlen(types[i].type) != n || memcmp(types[i].type, type->at, n) != 0))
			continue;
		gdb_text_format(document, "<osdata type=\"%s\">\n", types[i].element);
		types[i].list(&list);
		gdb_text_put(document, "</osdata>\n");
		break;
	}
	return !list.is_called_off;
}
