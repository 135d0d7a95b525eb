/*
 * jitted [-t THREADS] [-m]
 *
 * Makes code as a JIT compiler does: writes it to anonymous memory, which becomes executable and read-only then. "code
 * 0xADDRESS" and "ready" are said first; with -m it is in /tmp/perf-PID.map as "made add" and "made call". Then it does
 * what lines on stdin say, and says when that is done:
 *
 *	call N		each of THREADS threads calls add() N times: "called TOTAL"
 *	loop, halt	they call it all the time, until they are told to halt: "looping", "halted TOTAL"
 *	rewrite		puts other code at the place, which adds 7: "rewritten"
 *	touch		changes one byte of the constant in it: "touched"
 *	unmap		"unmapped"
 *	renew		unmaps it, and maps other memory with the other code there: "renewed"
 *	open, shut	makes the memory writable and executable, and read-only again: "opened", "shut"
 *	data		makes it writable, and not executable: "data"
 *	fork N		a child calls it N times: "forked 0"
 *	dump		the first 16 bytes in hex: "dump ..."
 */
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "target.h"

#define PAGE 4096ul
#define MAX_THREADS 64

/* int add(int n) { return n + 5; } */
static const unsigned char add_5[16] = {
	0x55,                   /* push %rbp */
	0x48, 0x89, 0xe5,       /* mov %rsp,%rbp */
	0xb8, 5,    0,    0, 0, /* mov $5,%eax */
	0x01, 0xf8,             /* add %edi,%eax */
	0x5d,                   /* pop %rbp */
	0xc3,                   /* ret */
};

static const unsigned char add_7[16] = {
	0x8d, 0x47, 7, /* lea 7(%rdi),%eax */
	0xc3,          /* ret */
};

/* A direct call of add(), 64 bytes before: endbr64; push %rax; call; pop %rcx; ret */
static const unsigned char call_add[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x50, 0xe8, 0xb6, 0xff, 0xff, 0xff, 0x59, 0xc3 };

#define CALL_AT 64

static unsigned char *code;
static int added = 5;
static long n_threads = 1;
static pthread_t threads[MAX_THREADS];
static atomic_bool looping;

typedef int function(int n);

static void protect(int protection)
{
	CHECK(mprotect(code, PAGE, protection) == 0);
}

static void put(const unsigned char *bytes, int adds)
{
	memcpy(code, bytes, 16);
	memcpy(code + CALL_AT, call_add, sizeof(call_add));
	added = adds;
	protect(PROT_READ | PROT_EXEC);
}

static void map(void)
{
	void *at = mmap(code, PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | (code ? MAP_FIXED_NOREPLACE : 0), -1, 0);

	CHECK(at != MAP_FAILED);
	code = at;
}

static void write_perf_map(void)
{
	char name[64];
	FILE *file;

	snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
	file = fopen(name, "w");
	CHECK(file);
	fprintf(file, "not a line\n%lx 10 stale\n%lx d made add\n%lx c made call\n", (unsigned long)code,
		(unsigned long)code, (unsigned long)code + CALL_AT);
	CHECK(fclose(file) == 0);
}

static void *run(void *data)
{
	long n = (long)data, i;

	for (i = 0; n ? i < n : atomic_load(&looping); i++)
		CHECK(((function *)code)((int)(i & 0xffff)) == (int)(i & 0xffff) + added);
	return (void *)i;
}

static void start_all(long n)
{
	for (long i = 0; i < n_threads; i++)
		CHECK(pthread_create(&threads[i], NULL, run, (void *)n) == 0);
}

static long join_all(void)
{
	long total = 0;

	for (long i = 0; i < n_threads; i++) {
		void *done;

		CHECK(pthread_join(threads[i], &done) == 0);
		total += (long)done;
	}
	return total;
}

static void say_number(const char *what, long n)
{
	char text[64];

	snprintf(text, sizeof(text), "%s %ld\n", what, n);
	say(text);
}

static void in_child(long n)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child) {
		run((void *)n);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	say_number("forked", status);
}

static void dump(void)
{
	char text[64] = "dump ";

	for (int i = 0; i < 16; i++)
		sprintf(text + strlen(text), "%02x", code[i]);
	strcat(text, "\n");
	say(text);
}

static void obey(const char *line)
{
	long n = strchr(line, ' ') ? number(strchr(line, ' ') + 1) : 0;

	if (!strncmp(line, "call ", 5)) {
		start_all(n);
		say_number("called", join_all());
	} else if (!strcmp(line, "loop")) {
		atomic_store(&looping, true);
		start_all(0);
		say("looping\n");
	} else if (!strcmp(line, "halt")) {
		atomic_store(&looping, false);
		say_number("halted", join_all());
	} else if (!strcmp(line, "rewrite")) {
		protect(PROT_READ | PROT_WRITE);
		put(add_7, 7);
		say("rewritten\n");
	} else if (!strcmp(line, "touch")) {
		protect(PROT_READ | PROT_WRITE);
		code[5] ^= 0xff;
		protect(PROT_READ | PROT_EXEC);
		say("touched\n");
	} else if (!strcmp(line, "unmap")) {
		CHECK(munmap(code, PAGE) == 0);
		say("unmapped\n");
	} else if (!strcmp(line, "renew")) {
		CHECK(munmap(code, PAGE) == 0);
		map();
		put(add_7, 7);
		say("renewed\n");
	} else if (!strcmp(line, "open")) {
		protect(PROT_READ | PROT_WRITE | PROT_EXEC);
		say("opened\n");
	} else if (!strcmp(line, "shut")) {
		protect(PROT_READ | PROT_EXEC);
		say("shut\n");
	} else if (!strcmp(line, "data")) {
		protect(PROT_READ | PROT_WRITE);
		say("data\n");
	} else if (!strncmp(line, "fork ", 5)) {
		in_child(n);
	} else if (!strcmp(line, "dump")) {
		dump();
	} else {
		CHECK(!"a known word");
	}
}

int main(int argc, char **argv)
{
	bool has_map = false;
	char line[64];
	int option;

	while ((option = getopt(argc, argv, "t:m")) != -1) {
		if (option == 't')
			n_threads = number(optarg);
		has_map |= option == 'm';
		if (option == '?')
			return 2;
	}
	CHECK(n_threads > 0 && n_threads <= MAX_THREADS);
	map();
	put(add_5, 5);
	if (has_map)
		write_perf_map();
	snprintf(line, sizeof(line), "code 0x%lx\nready\n", (unsigned long)code);
	say(line);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		obey(line);
	}
	return 0;
}
