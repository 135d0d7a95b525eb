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

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "ipc"))
		objects_of_system_v();
	return 0;
}
