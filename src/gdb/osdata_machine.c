#include "gdb/osdata_machine.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "gdb/osdata_list.h"

enum { WORDS_MAX = 24 };

/* ---- lines ----------------------------------------------------------------------------------- */

enum kind { END, TEXT, COMMAND, USER, GROUP, TIME };

struct column {
	const char *name;
	unsigned int word; /* of the line */
	enum kind kind;
};

static size_t split(char *line, char *words[WORDS_MAX])
{
	char *save, *word = strtok_r(line, " \t\n", &save);
	size_t n = 0;

	for (; word && n < WORDS_MAX; word = strtok_r(NULL, " \t\n", &save))
		words[n++] = word;
	return n;
}

static bool is_number(const char *word)
{
	return word[strspn(word, "-0123456789")] == '\0';
}

/* The name of a process, or its number where it has ended. */
static void put_command(struct gdb_osdata_list *list, const char *name, const char *pid)
{
	char command[16];

	gdb_osdata_read_command(atoi(pid), command);
	gdb_osdata_put(list, name, strcmp(command, "?") != 0 ? command : pid);
}

/* "": never. */
static void put_time(struct gdb_osdata_list *list, const char *name, const char *word)
{
	const time_t seconds = strtoll(word, NULL, 10);
	char text[32] = "";
	struct tm local;

	if (seconds && localtime_r(&seconds, &local))
		strftime(text, sizeof(text), "%a %b %e %H:%M:%S %Y", &local);
	gdb_osdata_put(list, name, text);
}

static void put(struct gdb_osdata_list *list, const struct column *column, const char *word)
{
	switch (column->kind) {
	case COMMAND:
		put_command(list, column->name, word);
		return;
	case USER:
		gdb_osdata_put_user(list, column->name, (uid_t)strtoul(word, NULL, 10), "");
		return;
	case GROUP:
		gdb_osdata_put_group(list, column->name, (gid_t)strtoul(word, NULL, 10), "");
		return;
	case TIME:
		put_time(list, column->name, word);
		return;
	case TEXT:
	case END:
		gdb_osdata_put(list, column->name, word);
		return;
	}
}

/* Lines that have all words; of System V a number is first, which the head has not. */
static void list_lines(struct gdb_osdata_list *list, const char *path, const struct column *columns, size_t n_min,
		       bool has_head)
{
	kymo_cleanup_fclose FILE *file = fopen(path, "re");
	kymo_cleanup_free char *line = NULL;
	char *words[WORDS_MAX];
	size_t size = 0;

	while (file && gdb_osdata_goes_on(list) && getline(&line, &size, file) > 0) {
		if (split(line, words) < n_min || (has_head && !is_number(words[0])))
			continue;
		gdb_osdata_begin_item(list);
		for (const struct column *column = columns; column->kind != END; column++)
			put(list, column, words[column->word]);
		gdb_osdata_end_item(list);
	}
}

/* ---- System V -------------------------------------------------------------------------------- */

void gdb_list_queues(struct gdb_osdata_list *list)
{
	static const struct column columns[] = {
		{ "key", 0, TEXT },
		{ "msqid", 1, TEXT },
		{ "permissions", 2, TEXT },
		{ "num used bytes", 3, TEXT },
		{ "num messages", 4, TEXT },
		{ "last msgsnd() command", 5, COMMAND },
		{ "last msgrcv() command", 6, COMMAND },
		{ "user", 7, USER },
		{ "group", 8, GROUP },
		{ "creator user", 9, USER },
		{ "creator group", 10, GROUP },
		{ "last msgsnd() time", 11, TIME },
		{ "last msgrcv() time", 12, TIME },
		{ "last msgctl() time", 13, TIME },
		{ NULL, 0, END },
	};

	list_lines(list, "/proc/sysvipc/msg", columns, 14, true);
}

void gdb_list_semaphores(struct gdb_osdata_list *list)
{
	static const struct column columns[] = {
		{ "key", 0, TEXT },
		{ "semid", 1, TEXT },
		{ "permissions", 2, TEXT },
		{ "num semaphores", 3, TEXT },
		{ "user", 4, USER },
		{ "group", 5, GROUP },
		{ "creator user", 6, USER },
		{ "creator group", 7, GROUP },
		{ "last semop() time", 8, TIME },
		{ "last semctl() time", 9, TIME },
		{ NULL, 0, END },
	};

	list_lines(list, "/proc/sysvipc/sem", columns, 10, true);
}

void gdb_list_shared(struct gdb_osdata_list *list)
{
	static const struct column columns[] = {
		{ "key", 0, TEXT },
		{ "shmid", 1, TEXT },
		{ "permissions", 2, TEXT },
		{ "size", 3, TEXT },
		{ "creator command", 4, COMMAND },
		{ "last op. command", 5, COMMAND },
		{ "num attached", 6, TEXT },
		{ "user", 7, USER },
		{ "group", 8, GROUP },
		{ "creator user", 9, USER },
		{ "creator group", 10, GROUP },
		{ "last shmat() time", 11, TIME },
		{ "last shmdt() time", 12, TIME },
		{ "last shmctl() time", 13, TIME },
		{ NULL, 0, END },
	};

	list_lines(list, "/proc/sysvipc/shm", columns, 14, true);
}

void gdb_list_modules(struct gdb_osdata_list *list)
{
	static const struct column columns[] = {
		{ "name", 0, TEXT },   { "size", 1, TEXT },    { "num uses", 2, TEXT }, { "dependencies", 3, TEXT },
		{ "status", 4, TEXT }, { "address", 5, TEXT }, { NULL, 0, END },
	};

	list_lines(list, "/proc/modules", columns, 6, false);
}

/* ---- sockets --------------------------------------------------------------------------------- */

/* "0100007F:1F90": words of the address in the machine's order, and the port. */
static bool read_address(const char *word, int family, char host_ret[INET6_ADDRSTRLEN], unsigned int *port_ret)
{
	const size_t n = family == AF_INET ? 1 : 4;
	uint32_t address[4];

	for (size_t i = 0; i < n; i++)
		if (sscanf(word + 8 * i, "%8" SCNx32, &address[i]) != 1)
			return false;
	return strlen(word) > 8 * n && sscanf(word + 8 * n, ":%x", port_ret) == 1 &&
	       inet_ntop(family, address, host_ret, INET6_ADDRSTRLEN);
}

/* By the kernel's numbers, from 1 on. */
static const char *state_of(const char *word)
{
	static const char *const names[] = { "ESTABLISHED", "SYN_SENT",  "SYN_RECV", "FIN_WAIT1",
					     "FIN_WAIT2",   "TIME_WAIT", "CLOSE",    "CLOSE_WAIT",
					     "LAST_ACK",    "LISTEN",    "CLOSING" };
	const unsigned long state = strtoul(word, NULL, 16);

	return state > 0 && state <= kymo_countof(names) ? names[state - 1] : "(unknown)";
}

static void put_socket(struct gdb_osdata_list *list, char *const words[], int family, const char *protocol)
{
	char local[INET6_ADDRSTRLEN], remote[INET6_ADDRSTRLEN];
	unsigned int local_port, remote_port;

	if (!read_address(words[1], family, local, &local_port) ||
	    !read_address(words[2], family, remote, &remote_port))
		return;
	gdb_osdata_begin_item(list);
	gdb_osdata_put(list, "local address", local);
	gdb_osdata_put_number(list, "local port", local_port);
	gdb_osdata_put(list, "remote address", remote);
	gdb_osdata_put_number(list, "remote port", remote_port);
	gdb_osdata_put(list, "state", state_of(words[3]));
	gdb_osdata_put_user(list, "user", (uid_t)strtoul(words[7], NULL, 10), "");
	gdb_osdata_put(list, "family", family == AF_INET ? "INET" : "INET6");
	gdb_osdata_put(list, "protocol", protocol);
	gdb_osdata_end_item(list);
}

void gdb_list_sockets(struct gdb_osdata_list *list)
{
	static const struct {
		const char *path, *protocol;
		int family;
	} files[] = { { "/proc/net/tcp", "STREAM", AF_INET },
		      { "/proc/net/udp", "DGRAM", AF_INET },
		      { "/proc/net/tcp6", "STREAM", AF_INET6 },
		      { "/proc/net/udp6", "DGRAM", AF_INET6 } };
	kymo_cleanup_free char *line = NULL;
	char *words[WORDS_MAX];
	size_t size = 0;

	for (size_t i = 0; i < kymo_countof(files); i++) {
		kymo_cleanup_fclose FILE *file = fopen(files[i].path, "re");

		while (file && gdb_osdata_goes_on(list) && getline(&line, &size, file) > 0)
			if (split(line, words) >= 8)
				put_socket(list, words, files[i].family, files[i].protocol);
	}
}
