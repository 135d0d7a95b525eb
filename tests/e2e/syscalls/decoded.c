/* Calls with structures that hold a number for each member, made on objects that are not there: an injected result of 0
 * has a tracer show what the kernel would have filled in. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROOM = 256 };

/* Ends where nothing can be read any more. */
static uint8_t *page_end(void)
{
	uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(pages + 4096, 4096);
	return pages + 4096;
}

static void fill(uint8_t *bytes, unsigned pattern)
{
	for (unsigned i = 0; i < ROOM; i++)
		bytes[i] = pattern == 2 ? 0xff : (uint8_t)(pattern ? i * 7 + 1 : 0);
}

static void objects_of_system_v(void)
{
	uint8_t bytes[ROOM], *end = page_end();

	for (unsigned pattern = 0; pattern < 3; pattern++)
		for (int command = 0; command < 30; command++)
			for (int form = 0; form <= 0x100; form += 0x100) {
				fill(bytes, pattern);
				syscall(SYS_msgctl, -1, command | form, bytes);
				syscall(SYS_shmctl, -1, command | form, bytes);
				syscall(SYS_semctl, -1, 7, command | form, bytes);
			}
	for (int command = 0; command < 22; command++)
		for (unsigned size = 0; size <= 48; size += 16) {
			syscall(SYS_msgctl, -1, command, end - size);
			syscall(SYS_shmctl, -1, command, end - size);
			syscall(SYS_semctl, -1, 7, command, end - size);
		}
	syscall(SYS_msgctl, -1, 2, NULL);
	syscall(SYS_msgget, 0, -1);
	syscall(SYS_shmget, -1, 1, 0x7c001fff);
}

static const uint64_t values[] = { 0,
				   1,
				   2,
				   3,
				   7,
				   9,
				   31,
				   0xff,
				   0x101,
				   0x10007,
				   0xdeadbeefULL,
				   0xbadc0ded0000001ULL,
				   0x18,
				   0x20e,
				   0x50203,
				   0x7ffffffe,
				   0xffffffff00000000,
				   UINT64_MAX };
enum { N_VALUES = sizeof(values) / sizeof(*values) };

static void options_of_processes(void)
{
	static const uint32_t special[] = { 0x53564d41, 0x59616d61, 1000 };
	uint8_t *end = page_end();
	uint64_t word = 0x30000000f;

	memset(end - 16, 'x', 12);
	memset(end - 4, 0, 4);
	for (uint32_t i = 0; i < 83; i++) {
		const uint32_t option = i < 80 ? i : special[i - 80];

		if (option ==
		    52) /* PR_GET_SPECULATION_CTRL: strace shows a string of an earlier call where it knows none */
			continue;
		for (unsigned v = 0; v < N_VALUES; v++)
			for (unsigned w = 0; w < N_VALUES; w += 3)
				syscall(SYS_prctl, option, values[v], values[w], values[(v + 3) % N_VALUES],
					values[(w + 5) % N_VALUES]);
		syscall(SYS_prctl, option, end - 16, end - 8, end - 4, end);
		syscall(SYS_prctl, option, &word, &word, &word, &word);
		syscall(SYS_prctl, option, 0, &word, &word, end - 16);
	}
}

static void state_of_the_processor(void)
{
	static const int options[] = { 0,      0x1001, 0x1002, 0x1003, 0x1004, 0x1011, 0x1012, 0x1021, 0x1022,
				       0x1023, 0x1024, 0x1025, 0x2001, 0x2002, 0x2003, 0x3001, 0x4001, -1 };
	uint64_t word = 0x30000000f, none = 0;

	for (unsigned i = 0; i < sizeof(options) / sizeof(*options); i++) {
		for (unsigned v = 0; v < N_VALUES; v++)
			syscall(SYS_arch_prctl, options[i], values[v]);
		syscall(SYS_arch_prctl, options[i], &word);
		syscall(SYS_arch_prctl, options[i], &none);
		syscall(SYS_arch_prctl, options[i], page_end() - 4);
	}
}

static void kinds_of_systems(void)
{
	for (uint64_t kind = 0; kind < 0x24; kind++)
		for (int bit = 7; bit < 34; bit++)
			syscall(SYS_personality, kind | (bit > 7 ? 5ull << bit : 0));
	syscall(SYS_personality, UINT32_MAX);
}

static void files_without_names(void)
{
	enum { MEMFD_SECRET = 447 };

	for (unsigned bit = 0; bit < 32; bit++) {
		syscall(SYS_memfd_create, "name", 1u << bit);
		syscall(SYS_memfd_create, "name", 1u << bit | 1);
		syscall(SYS_memfd_create, "name", 0u - (1u << bit));
		syscall(MEMFD_SECRET, 1u << bit);
	}
	syscall(SYS_memfd_create, "name", 0);
	syscall(MEMFD_SECRET, 0);
}

static void mounts(void)
{
	for (unsigned bit = 0; bit < 36; bit++) {
		syscall(SYS_mount, "a", "b", "c", 1ull << bit, "d");
		syscall(SYS_mount, "a", "b", "c", 1ull << bit | 0x1001, "d");
		syscall(SYS_mount, "a", "b", "c", 0xc0ed0000ull | 1ull << bit, "d");
	}
	syscall(SYS_mount, "a", "b", "c", 0xc0ed0000ull, "d");
}

static const struct {
	const char *name;
	void (*call)(void);
} parts[] = {
	{ "ipc", objects_of_system_v },      { "prctl", options_of_processes }, { "arch", state_of_the_processor },
	{ "personality", kinds_of_systems }, { "memfd", files_without_names },  { "mount", mounts },
};

int main(int argc, char **argv)
{
	for (unsigned i = 0; argc > 1 && i < sizeof(parts) / sizeof(*parts); i++)
		if (!strcmp(argv[1], parts[i].name))
			parts[i].call();
	return 0;
}
