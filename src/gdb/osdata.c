/* Columns and their names are those of gdbserver, which front ends read. */
#include "gdb/osdata.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/vec.h"
#include "procfs/info.h"

enum { COMMAND_MAX = 8 << 20, STAT_MAX = 4096, USER_MAX = 4096, CPU_WORDS = 128 };
enum { GROUP_FIELD = 5, CORE_FIELD = 39 }; /* of proc(5) */

/* ---- items ----------------------------------------------------------------------------------- */

static void put_column(struct gdb_text *document, const char *name, const char *value)
{
	gdb_text_format(document, "<column name=\"%s\">", name);
	gdb_text_xml(document, value);
	gdb_text_put(document, "</column>");
}

static void put_number(struct gdb_text *document, const char *name, long value)
{
	gdb_text_format(document, "<column name=\"%s\">%ld</column>", name, value);
}

static void put_command(struct gdb_text *document, const char *name, pid_t pid)
{
	char comm[16];

	kymo_read_comm(pid, comm);
	put_column(document, name, *comm ? comm : "?");
}

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

/* Words with a blank after each, or the name in brackets where there are none. */
static void put_command_line(struct gdb_text *document, const char *name, pid_t pid)
{
	kymo_cleanup_free char *text = NULL;
	char path[64], comm[16], bracketed[32];
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	if (!kymo_read_file(AT_FDCWD, path, COMMAND_MAX, &text, &n) && n) {
		for (size_t i = 0; i < n; i++)
			if (!text[i])
				text[i] = ' ';
		put_column(document, name, text);
		return;
	}
	kymo_read_comm(pid, comm);
	snprintf(bracketed, sizeof(bracketed), "[%s]", *comm ? comm : "?");
	put_column(document, name, bracketed);
}

static void put_user(struct gdb_text *document, pid_t pid)
{
	kymo_cleanup_free char *buffer = malloc(USER_MAX);
	struct passwd entry, *found = NULL;
	struct stat file;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (buffer && !stat(path, &file))
		getpwuid_r(file.st_uid, &entry, buffer, USER_MAX, &found);
	put_column(document, "user", found ? found->pw_name : "?");
}

/* CPUs that a process' threads have run on last, in ascending order. */
static void put_cores(struct gdb_text *document, pid_t pid)
{
	kymo_cleanup_closedir DIR *threads = open_part(pid, "task");
	uint64_t seen[CPU_WORDS] = { 0 };
	const char *separator = "";
	int tid;

	while ((tid = next_number(threads)) >= 0) {
		const long core = read_field(tid, CORE_FIELD);

		if (core >= 0 && core < 64 * CPU_WORDS)
			seen[core / 64] |= 1ull << core % 64;
	}
	gdb_text_put(document, "<column name=\"cores\">");
	for (int core = 0; core < 64 * CPU_WORDS; core++) {
		if (!(seen[core / 64] & 1ull << core % 64))
			continue;
		gdb_text_format(document, "%s%d", separator, core);
		separator = ",";
	}
	gdb_text_put(document, "</column>");
}

/* ---- the lists ------------------------------------------------------------------------------- */

static void list_types(struct gdb_text *document);

static void list_processes(struct gdb_text *document)
{
	kymo_cleanup_closedir DIR *processes = opendir("/proc");
	int pid;

	while ((pid = next_number(processes)) >= 0) {
		gdb_text_put(document, "<item>");
		put_number(document, "pid", pid);
		put_user(document, pid);
		put_command_line(document, "command", pid);
		put_cores(document, pid);
		gdb_text_put(document, "</item>");
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

static void list_groups(struct gdb_text *document)
{
	kymo_cleanup_closedir DIR *processes = opendir("/proc");
	KYMO_VEC(struct member) members = { 0 };
	int pid;

	while ((pid = next_number(processes)) >= 0) {
		const struct member member = { read_field(pid, GROUP_FIELD), pid };

		/* Threads of the kernel are of group 0. */
		if (member.group > 0 && !kymo_vec_push(&members, member))
			document->has_failed = true;
	}
	if (members.n)
		qsort(members.items, members.n, sizeof(*members.items), compare_members);
	for (size_t i = 0; i < members.n; i++) {
		gdb_text_put(document, "<item>");
		put_number(document, "pgid", members.items[i].group);
		put_command(document, "leader command", (pid_t)members.items[i].group);
		put_number(document, "pid", members.items[i].pid);
		put_command_line(document, "command line", members.items[i].pid);
		gdb_text_put(document, "</item>");
	}
	kymo_vec_deinit(&members);
}

static void list_threads_of(pid_t pid, struct gdb_text *document)
{
	kymo_cleanup_closedir DIR *threads = open_part(pid, "task");
	int tid;

	while ((tid = next_number(threads)) >= 0) {
		gdb_text_put(document, "<item>");
		put_number(document, "pid", pid);
		put_command(document, "command", pid);
		put_number(document, "tid", tid);
		put_number(document, "core", read_field(tid, CORE_FIELD));
		gdb_text_put(document, "</item>");
	}
}

static void list_threads(struct gdb_text *document)
{
	kymo_cleanup_closedir DIR *processes = opendir("/proc");
	int pid;

	while ((pid = next_number(processes)) >= 0)
		list_threads_of(pid, document);
}

static void list_files_of(pid_t pid, struct gdb_text *document)
{
	kymo_cleanup_closedir DIR *files = open_part(pid, "fd");
	int fd;

	while ((fd = next_number(files)) >= 0) {
		char number[16], name[PATH_MAX];
		ssize_t n;

		snprintf(number, sizeof(number), "%d", fd);
		n = readlinkat(dirfd(files), number, name, sizeof(name) - 1);
		name[n < 0 ? 0 : n] = '\0';
		gdb_text_put(document, "<item>");
		put_number(document, "pid", pid);
		put_command(document, "command", pid);
		put_number(document, "file descriptor", fd);
		put_column(document, "name", n < 0 ? number : name);
		gdb_text_put(document, "</item>");
	}
}

static void list_files(struct gdb_text *document)
{
	kymo_cleanup_closedir DIR *processes = opendir("/proc");
	int pid;

	while ((pid = next_number(processes)) >= 0)
		list_files_of(pid, document);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct {
	const char *type, *element, *title, *description;
	void (*list)(struct gdb_text *document);
} types[] = {
	{ "types", "types", "Types", "Listing of info os types you can list", list_types },
	{ "files", "files", "File descriptors", "Listing of all file descriptors", list_files },
	{ "processes", "processes", "Processes", "Listing of all processes", list_processes },
	{ "procgroups", "process groups", "Process groups", "Listing of all process groups", list_groups },
	{ "threads", "threads", "Threads", "Listing of all threads", list_threads },
};

/* All but this one. */
static void list_types(struct gdb_text *document)
{
	for (size_t i = 1; i < kymo_countof(types); i++) {
		gdb_text_put(document, "<item>");
		put_column(document, "Type", types[i].type);
		put_column(document, "Description", types[i].description);
		put_column(document, "Title", types[i].title);
		gdb_text_put(document, "</item>");
	}
}

void gdb_list_osdata(const struct gdb_words *type, struct gdb_text *document)
{
	const size_t n = gdb_words_left(type);

	for (size_t i = 0; i < kymo_countof(types); i++) {
		if (n && (strlen(types[i].type) != n || memcmp(types[i].type, type->at, n) != 0))
			continue;
		gdb_text_format(document, "<osdata type=\"%s\">\n", types[i].element);
		types[i].list(document);
		gdb_text_put(document, "</osdata>\n");
		return;
	}
}
