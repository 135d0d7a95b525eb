/*
 * The keeper: a process that waits for the end of the hub's thread. Then it restores the bytes and registers that the
 * hub has changed in other processes.
 *
 * It shares two things with the hub: the journal, and the table of descriptors, in which the memory of each process is
 * open. So no access is checked again, and no process id can mean another process. The kernel sends the keeper a signal
 * when the hub's thread ends, right after the kernel has detached its threads. A descriptor tells the end of the hub's
 * process, too, a little later. The keeper has done all its work once before, with an empty journal, so that all its
 * pages are in memory.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/trap.h"
#include "base/backoff.h"
#include "base/io.h"
#include "hub/thread/seize.h"
#include "hub/state.h"
#include "hub/trap/keeper.h"
#include "kymo/engine.h"

#define ENTRIES (KYMO_BREAKPOINTS_MAX + 192)
#define LOOK_SECONDS 1
#define SEIZE_MS 2000

enum { ENTRY_FREE, ENTRY_BYTE, ENTRY_WORD, ENTRY_WATCHES };

struct entry {
	atomic_int kind; /* last of all, when the rest is in; first of all, when it goes */
	int32_t where;   /* a descriptor; a thread */
	uint64_t address;
	uint8_t original;
};

/* Whether the hub uses the journal. A keeper that finds it unused for a while ends; from then on it puts nothing back.
 */
enum { JOURNAL_IS_UNUSED, JOURNAL_IS_USED, JOURNAL_IS_LEFT };

struct hub_journal {
	atomic_int use;
	atomic_uint n_noted; /* entries, since the beginning */
	atomic_uint n_used;  /* none is behind these */
	unsigned int n;      /* how many are taken; the hub's */
	struct entry entries[ENTRIES];
};

/* ---- what the keeper does -------------------------------------------------------------------- */

static void put_byte_back(const struct entry *entry)
{
	uint8_t now;

	if (pread(entry->where, &now, 1, (off_t)entry->address) == 1 && now == KYMO_TRAP_BYTE)
		while (pwrite(entry->where, &entry->original, 1, (off_t)entry->address) < 0 && errno == EINTR)
			;
}

static void clear_word(const struct entry *entry)
{
	const uint32_t zero = 0;

	while (pwrite(entry->where, &zero, sizeof(zero), (off_t)entry->address) < 0 && errno == EINTR)
		;
}

static void put_all_back(const struct hub_journal *journal)
{
	for (unsigned int i = 0; i < journal->n_used; i++) {
		if (journal->entries[i].kind == ENTRY_WORD)
			clear_word(&journal->entries[i]);
		if (journal->entries[i].kind == ENTRY_BYTE)
			put_byte_back(&journal->entries[i]);
	}
}

/* Whether it has stopped, and its registers are clear, or it never will. */
static bool is_clear(pid_t tid)
{
	pid_t got;
	int status;

	got = waitpid(tid, &status, __WALL | WNOHANG);
	if (!got)
		return false;
	if (got == tid && WIFSTOPPED(status)) {
		int signal = status >> 16 == 0 ? WSTOPSIG(status) : 0;
		siginfo_t info;

		if (signal == SIGTRAP && !ptrace(PTRACE_GETSIGINFO, tid, 0, &info) && info.si_code == TRAP_HWBKPT)
			signal = 0; /* a hit, too late for the hub and in time for us */
		ptrace(PTRACE_POKEUSER, tid, kymo_watch_register(KYMO_WATCH_CONTROL), 0);
		ptrace(PTRACE_DETACH, tid, 0, signal);
	}
	return true;
}

/* Of the first `n` entries. Whether any have yet to stop. */
static bool clear_stopped(struct hub_journal *journal, unsigned int n)
{
	bool is_any = false;

	for (unsigned int i = 0; i < n; i++) {
		if (journal->entries[i].kind != ENTRY_WATCHES)
			continue;
		if (is_clear(journal->entries[i].where))
			journal->entries[i].kind = ENTRY_FREE;
		is_any |= journal->entries[i].kind == ENTRY_WATCHES;
	}
	return is_any;
}

/* It may wait for an exec, and that for the end of one that was seized before. */
static bool seize(struct hub_journal *journal, unsigned int i, uint64_t deadline)
{
	int err;

	while ((err = hub_seize_thread(journal->entries[i].where, 0)) == -EINTR && kymo_now_ns() < deadline)
		clear_stopped(journal, i);
	return !err && !ptrace(PTRACE_INTERRUPT, journal->entries[i].where, 0, 0);
}

static void clear_watches(struct hub_journal *journal)
{
	uint64_t deadline = kymo_now_ns() + SEIZE_MS * 1000000ull;
	struct hub_seizer seizer = { 0 };

	hub_seizing_begins(&seizer);
	for (unsigned int i = 0; i < journal->n_used; i++)
		if (journal->entries[i].kind == ENTRY_WATCHES && !seize(journal, i, deadline))
			journal->entries[i].kind = ENTRY_FREE;
	hub_seizing_ends(&seizer);
	for (unsigned int spins = 0; clear_stopped(journal, journal->n_used) && kymo_now_ns() < deadline; spins++)
		kymo_back_off(spins);
}

static volatile pid_t told_by; /* the sender of the signal, which any process may send */

static void on_end(int signal, siginfo_t *info, void *context)
{
	told_by = info->si_pid;
}

/* Wait for a while; whether the thread that has made it has ended. */
static bool is_left(pid_t pid, pid_t tid, int pidfd)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	struct timespec timeout = { LOOK_SECONDS, 0 };
	sigset_t mask;

	sigfillset(&mask);
	sigdelset(&mask, SIGRTMAX);
	if (ppoll(&end, 1, &timeout, &mask) > 0 || told_by == pid)
		return true;
	return syscall(SYS_tgkill, pid, tid, 0) && errno == ESRCH;
}

/* Nothing was noted since the last look, and nothing is. A debugger notes and strikes at each stop, and to make a
 * keeper takes longer than all the rest of that. */
static bool leaves(struct hub_journal *journal, unsigned int *n_seen)
{
	const unsigned int n = journal->n_noted;
	const bool is_quiet = n == *n_seen;
	int unused = JOURNAL_IS_UNUSED;

	*n_seen = n;
	return is_quiet && atomic_compare_exchange_strong(&journal->use, &unused, JOURNAL_IS_LEFT);
}

static void __attribute__((noreturn)) be_keeper(struct hub_journal *journal, pid_t pid, pid_t tid, int pidfd)
{
	struct sigaction action = { .sa_sigaction = on_end, .sa_flags = SA_SIGINFO };
	struct sched_param first = { .sched_priority = 1 };
	static struct entry nothing = { .where = -1 };
	unsigned int n_seen = journal->n_noted;
	sigset_t signals;

	sigaction(SIGRTMAX, &action, NULL);
	kymo_take_seize_signal();
	setsid(); /* what ends the hub by its terminal or its group ends not this */
	prctl(PR_SET_PDEATHSIG, SIGRTMAX);
	prctl(PR_SET_NAME, "kymo-keeper");
	sched_setscheduler(0, SCHED_FIFO, &first); /* where it may: what it does takes no time, and is urgent */
	sigfillset(&signals);
	sigprocmask(SIG_SETMASK, &signals, NULL);
	for (unsigned int i = 0; i < ENTRIES; i++)
		(void)*(const volatile uint8_t *)&journal->entries[i]; /* no page of it is to be fetched later */
	put_byte_back(&nothing);
	clear_word(&nothing);
	while (!is_left(pid, tid, pidfd))
		if (leaves(journal, &n_seen))
			_exit(0);
	put_all_back(journal);
	clear_watches(journal);
	_exit(0);
}

/* ---- at the hub ------------------------------------------------------------------------------ */

void hub_get_keeper(struct kymo_hub *hub)
{
	pid_t pid = getpid(), child;

	if (hub->keeper.pid || !hub->keeper.journal)
		return;
	if (hub->keeper.pidfd < 0)
		hub->keeper.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	/* Its end is told by no signal: SIGCHLD is the program's. */
	child = (pid_t)syscall(SYS_clone, CLONE_FILES, 0, 0, 0, 0);
	if (!child)
		be_keeper(hub->keeper.journal, pid, hub->tid, hub->keeper.pidfd);
	hub->keeper.pid = child > 0 ? child : 0;
}

/* It has left the journal, or was killed. */
static void forget_keeper(struct kymo_hub *hub)
{
	while (hub->keeper.pid && waitpid(hub->keeper.pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	hub->keeper.pid = 0;
}

static void end_keeper(struct kymo_hub *hub)
{
	if (hub->keeper.pid)
		kill(hub->keeper.pid, SIGKILL);
	forget_keeper(hub);
}

bool hub_lacks_keeper(const struct kymo_hub *hub)
{
	return hub->keeper.journal && hub->keeper.journal->n && !hub->keeper.pid;
}

void hub_keeper_ended(struct kymo_hub *hub)
{
	hub->keeper.pid = 0;
	if (hub_lacks_keeper(hub))
		hub_get_keeper(hub);
}

void hub_leave_keeper(struct kymo_hub *hub)
{
	if (!hub->keeper.journal)
		return;
	if (!hub->keeper.journal->n)
		end_keeper(hub);
	if (!hub->keeper.journal->n && hub->keeper.pidfd >= 0)
		close(hub->keeper.pidfd); /* else it is still waited for; it was to be closed by exec */
	munmap(hub->keeper.journal, sizeof(*hub->keeper.journal));
	hub->keeper.journal = NULL;
}

static struct hub_journal *get_journal(struct kymo_hub *hub)
{
	struct hub_journal *journal;

	if (!hub->keeper.journal) {
		journal = mmap(NULL, sizeof(*journal), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		hub->keeper.journal = journal == MAP_FAILED ? NULL : journal;
	}
	if (hub->keeper.journal) {
		if (atomic_exchange(&hub->keeper.journal->use, JOURNAL_IS_USED) == JOURNAL_IS_LEFT)
			forget_keeper(hub);
		hub_get_keeper(hub);
	}
	return hub->keeper.pid ? hub->keeper.journal : NULL;
}

static int note_break(struct kymo_hub *hub, int kind, int where, uint64_t address, uint8_t original)
{
	struct hub_journal *journal = get_journal(hub);
	unsigned int i = 0;

	if (!journal)
		return -EAGAIN;
	if (journal->n == ENTRIES || (kind != ENTRY_WATCHES && journal->n >= KYMO_BREAKPOINTS_MAX))
		return -ENOSPC;
	if (journal->n < journal->n_used)
		while (journal->entries[i].kind != ENTRY_FREE)
			i++;
	else
		i = journal->n_used;
	journal->entries[i].where = where;
	journal->entries[i].address = address;
	journal->entries[i].original = original;
	journal->entries[i].kind = kind;
	if (i == journal->n_used)
		journal->n_used++;
	journal->n++;
	journal->n_noted++;
	return (int)i;
}

int hub_note_byte(struct kymo_hub *hub, int fd, uint64_t address, uint8_t original)
{
	return note_break(hub, ENTRY_BYTE, fd, address, original);
}

int hub_note_word(struct kymo_hub *hub, int fd, uint64_t address)
{
	return note_break(hub, ENTRY_WORD, fd, address, 0);
}

int hub_note_watches(struct kymo_hub *hub, pid_t tid)
{
	return note_break(hub, ENTRY_WATCHES, tid, 0, 0);
}

void hub_note_change(struct kymo_hub *hub, int entry, uint8_t original)
{
	if (entry >= 0)
		hub->keeper.journal->entries[entry].original = original;
}

void hub_strike(struct kymo_hub *hub, int entry)
{
	if (entry < 0)
		return;
	hub->keeper.journal->entries[entry].kind = ENTRY_FREE;
	if (--hub->keeper.journal->n)
		return;
	hub->keeper.journal->n_used = 0;
	hub->keeper.journal->use = JOURNAL_IS_UNUSED;
}
