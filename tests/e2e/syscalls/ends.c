/* Calls whose strings, structures and arrays end where nothing can be read, or are longer than what is known of them.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Ends where nothing can be read any more. */
static char *page_end(void)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(pages + 4096, 4096);
	return pages + 4096;
}

static void names(char *end)
{
	char name[400];

	for (int n = 28; n < 300; n += n == 36 ? 210 : 1) {
		memset(name, 'n', sizeof(name));
		name[n] = '\0';
		syscall(SYS_memfd_create, name, 0);
	}
	memset(end - 260, 'e', 260);
	for (int n = 20; n < 260; n += 15)
		syscall(SYS_memfd_create, end - n, 0);
	syscall(SYS_memfd_create, NULL, 0);
}

static void vectors(char *end)
{
	struct iovec local[] = { { end - 100, 40 }, { end, SIZE_MAX / 2 }, { end, 7 },
				 { NULL, 3 },       { end - 3, 3 },        { end - 90, 1000 } };

	memset(end - 100, 'v', 100);
	syscall(SYS_process_vm_writev, getpid(), local, 6, local, 6, 99);
	syscall(SYS_writev, -1, local, 6);
	syscall(SYS_writev, -1, local, 1);
}

/* A child that is made ends at once. */
static void make(const void *args, size_t size)
{
	const long pid = syscall(SYS_clone3, args, size);

	if (!pid)
		_exit(0);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, __WALL);
}

static void clones(char *end)
{
	uint64_t args[12] = { 0 };
	int ids[32];

	for (unsigned i = 0; i < 32; i++)
		ids[i] = -(int)i;
	args[10] = 1;
	memcpy(end - 88, args, 88);
	for (int size = 64; size <= 112; size += 8)
		make(end - 88, size);
	args[10] = 0, args[11] = 0xfacefeed;
	make(args, 96);
	args[11] = 0, args[8] = (uintptr_t)ids;
	for (args[9] = 0; args[9] <= 33; args[9] += args[9] == 2 ? 29 : 1)
		make(args, 88 - 1);
	args[9] = 2, args[8] = (uintptr_t)end - 4;
	make(args, 87);
	args[8] = args[9] = 0;
	for (int i = 0; i < 4; i++) {
		args[4] = (uint64_t[]){ 65, 17, UINT64_MAX, 1ull << 40 }[i];
		make(args, 87);
	}
	args[0] = 0x100000, args[4] = SIGCHLD; /* CLONE_PARENT_SETTID, to NULL */
	make(args, 88);
}

enum { N_MESSAGES = 32 }; /* kymo keeps the room of so many names */

static void messages(char *end)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int receiver = socket(AF_INET, SOCK_DGRAM, 0), sender = socket(AF_INET, SOCK_DGRAM, 0);
	struct mmsghdr many[N_MESSAGES] = { 0 }, *last = (struct mmsghdr *)end - 1;
	static char names[N_MESSAGES][128], data[N_MESSAGES];
	struct iovec vectors[N_MESSAGES];
	socklen_t size = sizeof(to);

	bind(receiver, (struct sockaddr *)&to, sizeof(to));
	getsockname(receiver, (struct sockaddr *)&to, &size);
	for (int i = 0; i < N_MESSAGES; i++) {
		sendto(sender, "m", 1, 0, (struct sockaddr *)&to, sizeof(to));
		vectors[i] = (struct iovec){ &data[i], 1 };
		many[i].msg_hdr = (struct msghdr){ .msg_name = names[i],
						   .msg_namelen = (socklen_t[]){ 0, 1, 2, 16, 100 }[i % 5],
						   .msg_iov = &vectors[i],
						   .msg_iovlen = 1 };
	}
	syscall(SYS_recvmmsg, receiver, many, N_MESSAGES, MSG_DONTWAIT, NULL);
	*last = (struct mmsghdr){ 0 };
	syscall(SYS_sendmmsg, -1, last, 2, MSG_DONTWAIT);
	syscall(SYS_recvmmsg, -1, last, 2, MSG_DONTWAIT, NULL);
	syscall(SYS_sendmmsg, -1, many, N_MESSAGES, MSG_DONTWAIT);
}

int main(void)
{
	char *end = page_end();

	names(end);
	vectors(end);
	clones(end);
	messages(end);
	return 0;
}
