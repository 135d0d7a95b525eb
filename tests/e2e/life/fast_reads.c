/* Does what lines of its input say, and answers each with "did N". `walk` calls visit() 500 times with nodes of the
 * heap. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct node {
	struct node *next;
	long value;
	char name[16];
};

static struct node *nodes, *lonely;

__attribute__((noinline)) long visit(const struct node *node)
{
	__asm__ volatile("" ::"r"(node) : "memory");
	return 1;
}

static void walk(void)
{
	const struct node *node = nodes;

	for (int i = 0; i < 500; i++, node = node->next)
		visit(node);
}

static void make_code(void)
{
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	code[0] = 0xc3;
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
	((void (*)(void))code)();
}

static void load(const char *name)
{
	void *library = dlopen(name, RTLD_NOW);

	if (library)
		dlclose(library);
}

static void make_child(void)
{
	pid_t child = fork();

	if (!child) {
		walk();
		munmap(lonely, 4096);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

/* A thread whose thread-local storage is not glibc's. */
static int walk_alone(void *data)
{
	walk();
	__atomic_store_n((int *)data, 1, __ATOMIC_RELEASE);
	for (;;)
		syscall(SYS_exit, 0);
	return 0;
}

static void make_strange_thread(void)
{
	static long storage[64];
	static int is_done;
	char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	storage[0] = (long)storage;
	clone(walk_alone, stack + 65536,
	      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS, &is_done,
	      NULL, storage, NULL);
	while (!__atomic_load_n(&is_done, __ATOMIC_ACQUIRE))
		usleep(1000);
}

/* From now on calls that a pad would make end the program. */
static void limit_calls(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigprocmask, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	const struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		abort();
}

/* The text of the C library once more, as its file has it: all jumps in it are gone. */
static void map_text_again(void)
{
	char line[512], path[400];
	unsigned long low, high, offset;
	FILE *maps = fopen("/proc/self/maps", "r");

	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx r-xp %lx %*s %*s %399s", &low, &high, &offset, path) == 4 &&
		    strstr(path, "/libc.so.6"))
			break;
	fclose(maps);
	mmap((void *)low, high - low, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, open(path, O_RDONLY),
	     (off_t)offset);
}

/* munmap by a number of which the kernel takes the lower half. */
static void drop_widely(void)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(0x100000000 + SYS_munmap), "D"(lonely), "S"(4096)
			 : "rcx", "r11", "memory");
}

/* A mapping that grows down is protected from its start, by its last page. */
static void protect_from_below(void)
{
	char *memory =
		mmap(NULL, 16 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
	struct node *node = (struct node *)memory;

	*node = (struct node){ .next = node, .value = 7 };
	for (int i = 0; i < 500; i++) {
		visit(node);
		usleep(1000);
	}
	mprotect(memory + 15 * 4096, 4096, PROT_NONE | PROT_GROWSDOWN);
	visit(node);
}

/* A system call as 32-bit programs make it. */
#ifdef OTHER_CALL
long call_as_32_bit(long number)
{
	__asm__ volatile("int $0x80" : "+a"(number) : : "memory");
	return number;
}
#endif

static char *page_of(const void *address)
{
	return (char *)((unsigned long)address & ~4095ul);
}

/* A system call where its file has none, in code that never runs. */
__attribute__((used, noinline)) void patched(void)
{
	__asm__ volatile("nop; nop; nop; nop");
}

static void patch(void)
{
	char *at = (char *)patched;

	mprotect(page_of(at), 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
	while (*(unsigned short *)at != 0x9090)
		at++;
	*(volatile unsigned short *)at = 0x050f;
	mprotect(page_of(at), 8192, PROT_READ | PROT_EXEC);
}

#define PIECE (64ul << 20)
#define PIECES 66ul

/* More than 4 GiB in memory: the same piece again and again. */
static void *map_much(void)
{
	char *much = mmap(NULL, PIECE * PIECES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int piece = memfd_create("piece", MFD_CLOEXEC);

	if (ftruncate(piece, PIECE))
		abort();
	for (size_t i = 0; i < PIECES; i++)
		mmap(much + i * PIECE, PIECE, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_POPULATE, piece, 0);
	close(piece);
	return much;
}

int main(void)
{
	void *much = NULL;
	char *data = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char line[64];

	nodes = calloc(10, sizeof(*nodes));
	for (int i = 0; i < 10; i++) {
		nodes[i] = (struct node){ .next = &nodes[(i + 1) % 10], .value = 100 + i };
		snprintf(nodes[i].name, sizeof(nodes[i].name), "node %d", i);
	}
	lonely = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*lonely = (struct node){ .next = lonely, .value = 7 };
	puts("ready");
	fflush(stdout);
	for (int n = 0; fgets(line, sizeof(line), stdin); n++) {
		line[strcspn(line, "\n")] = 0;
		if (!strcmp(line, "walk"))
			walk();
		else if (!strcmp(line, "lonely"))
			for (int i = 0; i < 500; i++)
				visit(lonely);
		else if (!strcmp(line, "drop"))
			munmap(lonely, 4096);
		else if (!strcmp(line, "protect"))
			mprotect(lonely, 4096, PROT_NONE);
		else if (!strcmp(line, "back"))
			mprotect(lonely, 4096, PROT_READ | PROT_WRITE);
		else if (!strcmp(line, "code"))
			make_code();
		else if (!strcmp(line, "keys"))
			syscall(SYS_pkey_alloc, 0, 0);
		else if (!strcmp(line, "strange"))
			make_strange_thread();
		else if (!strcmp(line, "drop widely"))
			drop_widely();
		else if (!strcmp(line, "limit"))
			limit_calls();
		else if (!strcmp(line, "text"))
			map_text_again();
		else if (!strcmp(line, "below"))
			protect_from_below();
		else if (!strcmp(line, "grow code"))
			mremap(page_of(main), 4096, 8192, 0); /* there is no room */
		else if (!strcmp(line, "grow data"))
			data = mremap(data, 4096, 8192, MREMAP_MAYMOVE);
		else if (!strcmp(line, "soften"))
			mprotect(page_of(main), 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
		else if (!strcmp(line, "patch"))
			patch();
		else if (!strcmp(line, "handle faults"))
			ioctl(-1, 0xaa00); /* USERFAULTFD_IOC_NEW */
		else if (!strcmp(line, "much"))
			much = map_much();
		else if (!strcmp(line, "little"))
			munmap(much, PIECE * PIECES);
		else if (!strcmp(line, "fork"))
			make_child();
		else if (!strncmp(line, "load ", 5))
			load(line + 5);
		printf("did %d\n", n);
		fflush(stdout);
	}
	return 0;
}
