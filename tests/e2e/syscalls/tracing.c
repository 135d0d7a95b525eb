/* tracing CASE: a tracer and what it traces. Prints what it is told; the same under every tracer that lets it. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OPTIONS (PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)

static volatile long word = 0x1234;

static void show(const char *what, long result)
{
	if (result < 0)
		printf("%s: %s\n", what, strerrorname_np(errno));
	else
		printf("%s: %ld\n", what, result);
}

static int wait_for(pid_t pid)
{
	int status = 0;
	pid_t got = waitpid(pid, &status, __WALL);

	if (got != pid)
		printf("waited for another: %s\n", got < 0 ? strerrorname_np(errno) : "");
	if (WIFEXITED(status))
		printf("  exited with %d\n", WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		printf("  killed by %d\n", WTERMSIG(status));
	else
		printf("  stopped by %d, event %d\n", WSTOPSIG(status), status >> 16);
	return status;
}

static void sleep_for_good(void)
{
	for (;;)
		pause();
}

static pid_t make_sleeper(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sleep_for_good();
	}
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	wait_for(pid);
}

static pid_t make_tracee(void (*run)(void))
{
	pid_t pid = fork();

	if (!pid) {
		show("TRACEME", ptrace(PTRACE_TRACEME, 0, 0, 0));
		show("TRACEME again", ptrace(PTRACE_TRACEME, 0, 0, 0));
		fflush(stdout);
		raise(SIGSTOP);
		run();
		_exit(3);
	}
	wait_for(pid);
	show("SETOPTIONS", ptrace(PTRACE_SETOPTIONS, pid, 0, OPTIONS));
	return pid;
}

/* ---- system calls ---------------------------------------------------------------------------- */

static void make_calls(void)
{
	syscall(SYS_getpid);
	if (syscall(SYS_getppid) != 77)
		_exit(1);
	if (syscall(SYS_setsid) != -1 || errno != ENOSYS)
		_exit(2);
}

static void see_call(pid_t pid)
{
	struct __ptrace_syscall_info info = { .op = 9 };
	struct user_regs_struct registers;
	unsigned long message = 99;
	long size = ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof(info), &info);

	ptrace(PTRACE_GETEVENTMSG, pid, 0, &message);
	ptrace(PTRACE_GETREGS, pid, 0, &registers);
	printf("  call %lld: op %d, %ld bytes, message %lu\n", registers.orig_rax, info.op, size, message);
	if (registers.orig_rax == SYS_getppid && info.op == PTRACE_SYSCALL_INFO_EXIT) {
		registers.rax = 77;
		show("SETREGS", ptrace(PTRACE_SETREGS, pid, 0, &registers));
	} else if (registers.orig_rax == SYS_setsid && info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		show("POKEUSER", ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, orig_rax), -1));
	}
}

static void case_calls(void)
{
	pid_t pid = make_tracee(make_calls);

	for (;;) {
		int status;

		ptrace(PTRACE_SYSCALL, pid, 0, 0);
		status = wait_for(pid);
		if (!WIFSTOPPED(status))
			return;
		see_call(pid);
	}
}

/* ---- memory and registers -------------------------------------------------------------------- */

static void check_word(void)
{
	_exit(word == 0x5678 ? 4 : 5);
}

static void case_memory(void)
{
	pid_t pid = make_tracee(check_word);
	struct user_regs_struct one, other;
	struct user_fpregs_struct fp;
	struct iovec set = { &other, sizeof(other) };
	static char xstate[65536];
	uint64_t mask = 0;

	show("PEEKDATA", ptrace(PTRACE_PEEKDATA, pid, &word, 0));
	show("POKEDATA", ptrace(PTRACE_POKEDATA, pid, &word, 0x5678));
	show("PEEKTEXT", ptrace(PTRACE_PEEKTEXT, pid, &word, 0));
	errno = 0;
	show("PEEKDATA of nothing", ptrace(PTRACE_PEEKDATA, pid, 8, 0));
	show("POKEDATA of nothing", ptrace(PTRACE_POKEDATA, pid, 8, 0));
	show("GETREGS", ptrace(PTRACE_GETREGS, pid, 0, &one));
	show("GETREGSET", ptrace(PTRACE_GETREGSET, pid, 1, &set));
	printf("same: %d, %zu\n", !memcmp(&one, &other, sizeof(one)), set.iov_len);
	show("SETREGSET", ptrace(PTRACE_SETREGSET, pid, 1, &set));
	set = (struct iovec){ xstate, sizeof(xstate) };
	show("GETREGSET of all", ptrace(PTRACE_GETREGSET, pid, 0x202, &set));
	printf("more: %d\n", set.iov_len > 512);
	show("SETREGSET of all", ptrace(PTRACE_SETREGSET, pid, 0x202, &set));
	show("GETREGSET of none", ptrace(PTRACE_GETREGSET, pid, 0x999, &set));
	show("GETFPREGS", ptrace(PTRACE_GETFPREGS, pid, 0, &fp));
	show("SETFPREGS", ptrace(PTRACE_SETFPREGS, pid, 0, &fp));
	show("GETREGS to nowhere", ptrace(PTRACE_GETREGS, pid, 0, 8));
	show("GETSIGMASK", ptrace(PTRACE_GETSIGMASK, pid, sizeof(mask), &mask));
	show("SETSIGMASK", ptrace(PTRACE_SETSIGMASK, pid, sizeof(mask), &mask));
	show("of another size", ptrace(PTRACE_GETSIGMASK, pid, 4, &mask));
	show("PEEKUSER", ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user_regs_struct, rip), 0) == (long)one.rip);
	show("unknown", ptrace(0x4299, pid, 0, 0));
	show("unknown options", ptrace(PTRACE_SETOPTIONS, pid, 0, 1 << 30));
	show("CONT with no signal there is", ptrace(PTRACE_CONT, pid, 0, 99));
	show("CONT", ptrace(PTRACE_CONT, pid, 0, 0));
	wait_for(pid);
	show("CONT of nobody", ptrace(PTRACE_CONT, pid, 0, 0));
}

/* ---- signals --------------------------------------------------------------------------------- */

static volatile sig_atomic_t handled;

static void on_signal(int number)
{
	handled += number;
}

static void get_signals(void)
{
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	raise(SIGUSR1); /* is let through */
	raise(SIGUSR1); /* becomes SIGUSR2 */
	raise(SIGUSR1); /* is taken away */
	raise(SIGTERM); /* likewise */
	_exit(handled == SIGUSR1 + SIGUSR2 ? 6 : 7);
}

static void case_signals(void)
{
	static const int instead[] = { 0, SIGUSR1, SIGUSR2, 0, 0 };
	pid_t pid = make_tracee(get_signals);

	for (int i = 0; i < 5; i++) {
		siginfo_t info;

		show("GETSIGINFO", ptrace(PTRACE_GETSIGINFO, pid, 0, &info));
		printf("  %d, code %d, from itself: %d\n", info.si_signo, info.si_code, info.si_pid == pid);
		show("CONT", ptrace(PTRACE_CONT, pid, 0, instead[i]));
		wait_for(pid);
	}
}

static void case_steps(void)
{
	pid_t pid = make_tracee(check_word);

	for (int i = 0; i < 50; i++) {
		siginfo_t info;
		int status;

		if (ptrace(PTRACE_SINGLESTEP, pid, 0, 0))
			show("SINGLESTEP", -1);
		if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status) || status >> 8 != SIGTRAP)
			printf("step %d: status %#x\n", i, status);
		if (ptrace(PTRACE_GETSIGINFO, pid, 0, &info) || info.si_signo != SIGTRAP)
			printf("step %d: signal %d\n", i, info.si_signo);
	}
	show("CONT", ptrace(PTRACE_CONT, pid, 0, 0));
	wait_for(pid);
}

/* ---- those that run already ------------------------------------------------------------------ */

static void case_attach(void)
{
	pid_t pid = make_sleeper();
	int status;

	show("CONT of one not traced", ptrace(PTRACE_CONT, pid, 0, 0));
	show("ATTACH", ptrace(PTRACE_ATTACH, pid, 0, 0));
	wait_for(pid);
	show("ATTACH again", ptrace(PTRACE_ATTACH, pid, 0, 0));
	show("ATTACH to oneself", ptrace(PTRACE_ATTACH, getpid(), 0, 0));
	show("INTERRUPT of one not seized", ptrace(PTRACE_INTERRUPT, pid, 0, 0));
	show("nothing more", waitpid(pid, &status, WNOHANG | __WALL));
	show("CONT", ptrace(PTRACE_CONT, pid, 0, 0));
	show("PEEKDATA of one that runs", ptrace(PTRACE_PEEKDATA, pid, &word, 0));
	kill(pid, SIGUSR1);
	wait_for(pid);
	show("DETACH", ptrace(PTRACE_DETACH, pid, 0, 0));
	show("DETACH again", ptrace(PTRACE_DETACH, pid, 0, 0));
	end_child(pid);
}

static void case_seize(void)
{
	pid_t pid = make_sleeper();
	siginfo_t info;

	show("SEIZE with an address", ptrace(PTRACE_SEIZE, pid, 1, 0));
	show("SEIZE", ptrace(PTRACE_SEIZE, pid, 0, OPTIONS));
	show("INTERRUPT", ptrace(PTRACE_INTERRUPT, pid, 0, 0));
	wait_for(pid);
	show("CONT", ptrace(PTRACE_CONT, pid, 0, 0));
	kill(pid, SIGSTOP);
	wait_for(pid);
	show("CONT", ptrace(PTRACE_CONT, pid, 0, SIGSTOP));
	wait_for(pid);
	show("GETSIGINFO", ptrace(PTRACE_GETSIGINFO, pid, 0, &info));
	printf("  %d, code %d\n", info.si_signo, info.si_code);
	show("LISTEN", ptrace(PTRACE_LISTEN, pid, 0, 0));
	kill(pid, SIGCONT);
	wait_for(pid);
	show("CONT", ptrace(PTRACE_CONT, pid, 0, 0));
	wait_for(pid);
	show("CONT", ptrace(PTRACE_CONT, pid, 0, SIGCONT));
	end_child(pid);
}

/* ---- children -------------------------------------------------------------------------------- */

static void make_child(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(8);
	waitpid(pid, NULL, 0);
	pid = vfork();
	if (!pid)
		_exit(9);
	waitpid(pid, NULL, 0);
	execl("/bin/true", "true", (char *)0);
}

static void case_children(void)
{
	pid_t pid = make_tracee(make_child), child = 0;
	int status, left = 1;

	ptrace(PTRACE_SETOPTIONS, pid, 0,
	       OPTIONS | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACEEXEC |
		       PTRACE_O_TRACEEXIT);
	ptrace(PTRACE_CONT, pid, 0, 0);
	while (left) {
		pid_t got = waitpid(-1, &status, __WALL);
		unsigned long message = 0;

		if (got < 0)
			break;
		if (!WIFSTOPPED(status)) {
			if (got == pid)
				printf("parent ended with %#x\n", status);
			left -= got == pid;
			continue;
		}
		if (status >> 16 == PTRACE_EVENT_FORK || status >> 16 == PTRACE_EVENT_VFORK ||
		    status >> 16 == PTRACE_EVENT_VFORK_DONE)
			ptrace(PTRACE_GETEVENTMSG, got, 0, &message);
		if (message && status >> 16 != PTRACE_EVENT_VFORK_DONE)
			child = (pid_t)message;
		if (got == pid && status >> 8 != SIGCHLD)
			printf("parent: %d, event %d, of the child: %d\n", WSTOPSIG(status), status >> 16,
			       message && (pid_t)message == child);
		ptrace(PTRACE_CONT, got, 0, status >> 8 == SIGCHLD ? SIGCHLD : 0);
	}
}

static void *end_thread(void *data)
{
	return NULL;
}

static void make_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, end_thread, NULL);
	pthread_join(thread, NULL);
}

static void case_threads(void)
{
	pid_t pid = make_tracee(make_thread), made = 0, ended = 0;
	int status, events = 0, stops = 0, ends = 0;

	ptrace(PTRACE_SETOPTIONS, pid, 0, OPTIONS | PTRACE_O_TRACECLONE);
	ptrace(PTRACE_CONT, pid, 0, 0);
	for (;;) {
		pid_t got = waitpid(-1, &status, __WALL);
		unsigned long message = 0;

		if (got < 0)
			break;
		if (got == pid && !WIFSTOPPED(status))
			printf("ended with %#x\n", status);
		if (!WIFSTOPPED(status) && got != pid) {
			ended = got; /* it may have, before its maker tells of it */
			ends++;
		}
		if (!WIFSTOPPED(status))
			continue;
		events += status >> 8 == (SIGTRAP | PTRACE_EVENT_CLONE << 8);
		if (got == pid && !ptrace(PTRACE_GETEVENTMSG, got, 0, &message) && status >> 16)
			made = (pid_t)message;
		stops += got != pid && status >> 8 == SIGSTOP;
		ptrace(PTRACE_CONT, got, 0, 0);
	}
	printf("%d made, %d stopped, %d ended, the same: %d\n", events, stops, ends, made == ended);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void trace_brother(pid_t pid)
{
	struct itimerval often = { { 0, 100000 }, { 0, 100000 } }, soon = { .it_value = { 0, 100000 } },
			 never = { .it_value = { 0, 0 } };
	struct sigaction action = { .sa_handler = on_signal };
	siginfo_t info;
	int status;

	show("ATTACH", ptrace(PTRACE_ATTACH, pid, 0, 0));
	memset(&info, 0, sizeof(info));
	show("waitid", waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT | __WALL));
	printf("  %d, code %d, status %d, who: %d\n", info.si_signo, info.si_code, info.si_status, info.si_pid == pid);
	wait_for(pid);
	show("CONT", ptrace(PTRACE_CONT, pid, 0, 0));
	show("nothing yet", waitpid(-1, &status, WNOHANG | __WALL));
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL); /* one may come before it waits */
	show("a wait that ends by a signal", waitpid(pid, &status, __WALL));
	setitimer(ITIMER_REAL, &never, NULL);
	handled = 0;
	action.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	if (!fork()) {
		while (kill(getppid(), 0) == 0 && getitimer(ITIMER_REAL, &soon) == 0 && usleep(300000) == 0) {
			kill(pid, SIGUSR2);
			_exit(0);
		}
	}
	show("a wait that goes on behind one", waitpid(pid, &status, __WALL) == pid);
	printf("  handled %d, stopped by %d\n", handled, WSTOPSIG(status));
	wait(NULL);
	kill(pid, SIGKILL);
	wait_for(pid);
	show("no children", waitpid(-1, &status, __WALL));
}

static void case_wait(void)
{
	pid_t pid = make_sleeper(), tracer = fork();

	if (!tracer) {
		trace_brother(pid);
		fflush(stdout);
		_exit(0);
	}
	waitpid(tracer, NULL, 0);
	wait_for(pid);
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* The tracer ends, and what it traces runs on, or not. */
static void case_ends(void)
{
	for (int kills = 0; kills < 2; kills++) {
		pid_t pid = make_sleeper(), tracer = fork();
		int status;

		if (!tracer) {
			ptrace(PTRACE_ATTACH, pid, 0, 0);
			waitpid(pid, &status, __WALL);
			ptrace(PTRACE_SETOPTIONS, pid, 0, kills ? PTRACE_O_EXITKILL : 0);
			ptrace(PTRACE_CONT, pid, 0, 0);
			kill(getpid(), SIGKILL);
		}
		wait_for(tracer);
		if (!kills) {
			show("it lives", waitpid(pid, &status, WNOHANG));
			kill(pid, SIGTERM);
		}
		wait_for(pid);
	}
}

static void on_child(int number, siginfo_t *info, void *context)
{
	if (info->si_code == CLD_TRAPPED)
		handled++;
}

static void case_sigchld(void)
{
	struct sigaction action = { .sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART };
	sigset_t mask, before;
	pid_t pid = make_sleeper();

	sigaction(SIGCHLD, &action, NULL);
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mask, &before);
	show("ATTACH", ptrace(PTRACE_ATTACH, pid, 0, 0));
	while (!handled)
		sigsuspend(&before);
	printf("told\n");
	wait_for(pid);
	show("DETACH", ptrace(PTRACE_DETACH, pid, 0, 0));
	kill(pid, SIGKILL);
	wait_for(pid);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{ "calls", case_calls },       { "memory", case_memory },   { "signals", case_signals },
		{ "steps", case_steps },       { "attach", case_attach },   { "seize", case_seize },
		{ "children", case_children }, { "threads", case_threads }, { "wait", case_wait },
		{ "ends", case_ends },         { "sigchld", case_sigchld },
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (argc > 1 && !strcmp(argv[1], cases[i].name)) {
			cases[i].run();
			return 0;
		}
	return 2;
}
