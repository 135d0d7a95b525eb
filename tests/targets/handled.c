/*
 * handled [-t THREADS] [handle]
 *
 * Handles SIGSEGV and SIGFPE by comparing the program counter with labels in its own code, as language runtimes do: a
 * fault at any other address ends it with status 4. "handle" sets the handlers before anything else. Threads (0 without
 * option -t) call mixed() all the time, with pauses, and check each result. "ready" is said first; then it does what
 * lines on stdin say, and says when that is done:
 *
 *	handle		sets the handlers: "handling"
 *	fault N		N bad reads by each of read_word(), read_saved() and mixed(): "faulted 3N"
 *	divide N	N divisions by zero: "divided N"
 *	fork N		a child sets the handlers, and makes N bad reads by read_word(): "forked 0", or its
 *			status instead of the 0
 *	call N		each of the functions N times with good arguments: "called N"
 *
 * At the end: {"mixed": how often the threads and the lines have called mixed()}
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

#include "target.h"

#define MAX_THREADS 64
#define STATUS_ELSEWHERE 4

int read_word(const int *from);
int read_saved(const int *from);
int mixed(const int *from);
int divided(int by);
extern const char read_word_at[], read_saved_at[], mixed_at[], divided_at[];
extern const char read_word_end[], read_saved_end[], mixed_end[], divided_end[];

__asm__(".text\n"
	".macro function name\n"
	".balign 16\n"
	".globl \\name\n"
	".type \\name, @function\n"
	"\\name:\n"
	".endm\n"
	/* Its first instruction is the one that faults. */
	"function read_word\n"
	"read_word_at: mov (%rdi),%eax\n"
	"	add $1,%eax\n"
	"read_word_end: ret\n"
	".size read_word, . - read_word\n"
	/* Displaced as a group it would be among them. */
	"function read_saved\n"
	"	push %rbx\n"
	"read_saved_at: mov (%rdi),%ebx\n"
	"	lea 2(%rbx),%eax\n"
	"read_saved_end: pop %rbx\n"
	"	ret\n"
	".size read_saved, . - read_saved\n"
	/* Instructions of all lengths; puns rely on those that follow them. */
	"function mixed\n"
	"	push %rbp\n"
	"	mov %rsp,%rbp\n"
	"	xor %eax,%eax\n"
	"	push %rbx\n"
	"	sub $8,%rsp\n"
	"mixed_at: mov (%rdi),%ebx\n"
	"	add %ebx,%eax\n"
	"	mov (%rdi),%ecx\n"
	"	add %ecx,%eax\n"
	"	lea 0x10(%rax),%edx\n"
	"	add (%rdi),%edx\n"
	"	mov %edx,%eax\n"
	"mixed_end: add $8,%rsp\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	".size mixed, . - mixed\n"
	"function divided\n"
	"	mov $100,%eax\n"
	"	cltd\n"
	"divided_at: idiv %edi\n"
	"divided_end: ret\n"
	".size divided, . - divided\n");

static const struct {
	const char *at, *end;
	int signal;
} places[] = {
	{ read_word_at, read_word_end, SIGSEGV },
	{ read_saved_at, read_saved_end, SIGSEGV },
	{ mixed_at, mixed_end, SIGSEGV },
	{ divided_at, divided_end, SIGFPE },
};
static atomic_long n_faults;
static atomic_long n_mixed;
static atomic_bool is_over;

static void on_fault(int number, siginfo_t *info, void *data)
{
	greg_t *registers = ((ucontext_t *)data)->uc_mcontext.gregs;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (places[i].signal != number || registers[REG_RIP] != (greg_t)(uintptr_t)places[i].at)
			continue;
		registers[REG_RIP] = (greg_t)(uintptr_t)places[i].end;
		n_faults++;
		return;
	}
	_exit(STATUS_ELSEWHERE);
}

static void handle(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	CHECK(!sigaction(SIGSEGV, &action, NULL) && !sigaction(SIGFPE, &action, NULL));
}

static void call(const int *word)
{
	CHECK(read_word(word) == *word + 1);
	CHECK(read_saved(word) == *word + 2);
	CHECK(mixed(word) == 3 * *word + 16);
	CHECK(divided(7) == 14);
	n_mixed++;
}

static void *work(void *unused)
{
	while (!is_over) {
		const int word = (int)(n_mixed & 0xffff);

		CHECK(mixed(&word) == 3 * word + 16);
		if (!(++n_mixed % 64))
			nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	}
	return NULL;
}

static void do_child(long n)
{
	pid_t child = fork();
	char text[64];
	int status;

	if (!child) {
		long before = n_faults;

		handle();
		for (long i = 0; i < n; i++)
			read_word(NULL);
		_exit(n_faults - before == n ? 0 : EXIT_WRONG);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	snprintf(text, sizeof(text), "forked %d\n", status);
	say(text);
}

static void do_line(const char *line, long n)
{
	char text[64];
	long before = n_faults;

	if (!strcmp(line, "handle")) {
		handle();
		say("handling\n");
		return;
	}
	if (!strcmp(line, "fork")) {
		do_child(n);
		return;
	}
	for (long i = 0; i < n; i++) {
		const int word = 40;

		if (!strcmp(line, "fault")) {
			read_word(NULL);
			read_saved(NULL);
			mixed(NULL);
			n_mixed++;
		} else if (!strcmp(line, "divide")) {
			divided(0);
		} else {
			call(&word);
		}
	}
	snprintf(text, sizeof(text), "%s %ld\n",
		 !strcmp(line, "fault")    ? "faulted"
		 : !strcmp(line, "divide") ? "divided"
					   : "called",
		 !strcmp(line, "call") ? n : n_faults - before);
	say(text);
}

int main(int argc, char **argv)
{
	pthread_t threads[MAX_THREADS];
	long n_threads = 0, n;
	char line[64], word[64];

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "handle"))
			handle();
		else if (!strcmp(argv[i], "-t") && i + 1 < argc)
			n_threads = number(argv[++i]);
	}
	CHECK(n_threads <= MAX_THREADS);
	for (long i = 0; i < n_threads; i++)
		CHECK(!pthread_create(&threads[i], NULL, work, NULL));
	say("ready\n");
	while (fgets(line, sizeof(line), stdin)) {
		n = 0;
		if (sscanf(line, "%63s %ld", word, &n) >= 1)
			do_line(word, n);
	}
	is_over = true;
	for (long i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	printf("{\"mixed\": %ld}\n", (long)n_mixed);
	return 0;
}
