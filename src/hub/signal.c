/* Signals: the chain of engines, and those that the hub sends. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/vec.h"
#include "hub/engine.h"
#include "hub/own_signal.h"
#include "hub/report.h"
#include "hub/signal.h"
#include "hub/state.h"
#include "hub/thread/task.h"
#include "hub/undo.h"
#include "kymo/engine.h"
#include "procfs/disposition.h"

/* ---- sending --------------------------------------------------------------------------------- */

/*
 * A signal that is sent from outside of a signal-delivery-stop can't carry what siginfo it should: the kernel lets no
 * other process say that it came from the kernel. So it carries a tag, and gets its siginfo when it arrives. The tag is
 * an address that means nothing to the program, should the hub die meanwhile.
 */
enum {
	FIRST_QUEUED = 32, /* of those that are kept however many there are: the kernel's SIGRTMIN */
	A_LOOK = 32,       /* signals at a time */
};

static void *tag_of(struct kymo_hub *hub, int serial)
{
	return (char *)hub + serial;
}

static int send_tagged(struct kymo_hub *hub, struct task *task, const siginfo_t *info, struct kymo_engine *sender)
{
	struct sent_signal sent = { .serial = ++hub->counts.sent, .sender = sender, .info = *info };
	siginfo_t tagged = { .si_signo = info->si_signo, .si_code = SI_QUEUE };
	int err;

	if (info->si_signo < FIRST_QUEUED && kymo_signal_is_pending(task->tid, info->si_signo))
		return 0; /* the kernel makes one of them, and says nothing */
	tagged.si_pid = getpid();
	tagged.si_uid = getuid();
	tagged.si_value.sival_ptr = tag_of(hub, sent.serial);
	if (!kymo_vec_push(&task->sent, sent))
		return -ENOMEM;
	if (!syscall(SYS_rt_tgsigqueueinfo, task->process->pid, task->tid, info->si_signo, &tagged))
		return 0;
	err = -errno;
	task->sent.n--;
	return err;
}

/* Put its own siginfo on one that the hub has sent; the engine that is not told of it. */
static const struct kymo_engine *untag(struct kymo_hub *hub, struct task *task, siginfo_t *info)
{
	if (info->si_code != SI_QUEUE)
		return NULL;
	for (size_t i = 0; i < task->sent.n; i++) {
		struct sent_signal sent = task->sent.items[i];

		if (info->si_value.sival_ptr != tag_of(hub, sent.serial) || info->si_signo != sent.info.si_signo)
			continue;
		task->sent.items[i] = task->sent.items[--task->sent.n];
		*info = sent.info;
		return sent.sender;
	}
	return NULL;
}

static void note_waiting(struct kymo_hub *hub, struct task *task, const siginfo_t *info, size_t *next)
{
	for (size_t i = 0; info->si_code == SI_QUEUE && i < task->sent.n; i++) {
		struct sent_signal *sent = &task->sent.items[(*next + i) % task->sent.n];

		if (info->si_value.sival_ptr != tag_of(hub, sent->serial))
			continue;
		sent->is_waiting = true;
		*next = (*next + i + 1) % task->sent.n; /* they wait in the order in which they were sent, mostly */
		return;
	}
}

/* Whether they could all be looked at. */
static bool note_all_waiting(struct kymo_hub *hub, struct task *task)
{
	struct __ptrace_peeksiginfo_args args = { .nr = A_LOOK };
	siginfo_t waiting[A_LOOK];
	size_t next = 0;
	long n;

	do {
		n = ptrace(PTRACE_PEEKSIGINFO, task->tid, &args, waiting);
		for (long i = 0; i < n; i++)
			note_waiting(hub, task, &waiting[i], &next);
		args.off += A_LOOK;
	} while (n == A_LOOK);
	return n >= 0;
}

/*
 * Some never arrive: sigwait() and signalfd take them past every tracer, and SIG_IGN drops pending ones. Two with one
 * number that are sent at once become one. The pending signals of a stopped thread are readable. Not at each stop: when
 * twice as many are missed as waited the last time.
 */
void hub_forget_lost_signals(struct kymo_hub *hub, struct task *task)
{
	size_t n = 0;

	if (task->sent.n <= 2 * task->n_waiting)
		return;
	for (size_t i = 0; i < task->sent.n; i++)
		task->sent.items[i].is_waiting = false;
	if (!note_all_waiting(hub, task))
		return;
	for (size_t i = 0; i < task->sent.n; i++)
		if (task->sent.items[i].is_waiting)
			task->sent.items[n++] = task->sent.items[i];
	task->sent.n = task->n_waiting = n;
}

static int inject_signal(struct kymo_engine *engine, const siginfo_t *info)
{
	struct task *task = engine->task;

	if (engine->is_detached || !task || task->end.was_told)
		return -ESRCH;
	if (info->si_signo == SIGKILL)
		return syscall(SYS_tgkill, task->process->pid, task->tid, SIGKILL) ? -errno : 0;
	return send_tagged(engine->hub, task, info, engine);
}

int hub_local_inject(struct kymo_engine *engine, const siginfo_t *info)
{
	int err;

	pthread_mutex_lock(&engine->hub->lock);
	err = inject_signal(engine, info);
	pthread_mutex_unlock(&engine->hub->lock);
	return err;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* What a disposition is called in events and verdicts. */
static const struct {
	enum kymo_event event;
	unsigned int verdict;
} kinds[] = {
	[KYMO_DISPOSITION_CAUGHT] = { KYMO_EVENT_SIGNAL, KYMO_SIGNAL_DELIVER },
	[KYMO_DISPOSITION_IGNORED] = { KYMO_EVENT_SIGNAL_IGN, KYMO_SIGNAL_IGN },
	[KYMO_DISPOSITION_STOP] = { KYMO_EVENT_SIGNAL_STOP, KYMO_SIGNAL_STOP },
	[KYMO_DISPOSITION_TERM] = { KYMO_EVENT_SIGNAL_TERM, KYMO_SIGNAL_TERM },
	[KYMO_DISPOSITION_CORE] = { KYMO_EVENT_SIGNAL_CORE, KYMO_SIGNAL_CORE },
};

/* A signal with that disposition: this one, or a substitute. */
static int one_that(pid_t tid, int signal, enum kymo_disposition does, const int *others, int otherwise)
{
	if (kymo_signal_disposition(tid, signal) == does)
		return signal;
	for (; *others; others++)
		if (kymo_signal_disposition(tid, *others) == does)
			return *others;
	return otherwise;
}

static int signal_for(struct kymo_hub *hub, struct task *task, const struct kymo_signal_report *report)
{
	static const int none[] = { 0 }, dumping[] = { SIGABRT, SIGQUIT, SIGTRAP, SIGSYS, SIGXCPU, 0 };
	int signal = report->info.si_signo;

	switch (report->verdict) {
	case KYMO_SIGNAL_IGN:
		return 0;
	case KYMO_SIGNAL_TERM:
		return one_that(task->tid, signal, KYMO_DISPOSITION_TERM, none, SIGKILL);
	case KYMO_SIGNAL_CORE:
		return one_that(task->tid, signal, KYMO_DISPOSITION_CORE, dumping, SIGKILL);
	case KYMO_SIGNAL_STOP:
		return one_that(task->tid, signal, KYMO_DISPOSITION_STOP, none, SIGSTOP);
	case KYMO_SIGNAL_REQUEUE:
		if (!send_tagged(hub, task, &report->info, NULL))
			return 0;
		break; /* it can't wait, then */
	}
	return signal;
}

static void ask_engines(struct kymo_hub *hub, struct task *task, struct kymo_signal_report *report,
			const struct kymo_engine *skip)
{
	enum kymo_disposition disposition = kymo_signal_disposition(task->tid, report->info.si_signo);
	int number = report->info.si_signo;

	report->kind = kinds[disposition].event;
	report->verdict = kinds[disposition].verdict;
	hub_report_signal(hub, task, report, skip);
	if (report->info.si_signo <= 0 || report->info.si_signo > SIGRTMAX)
		report->info.si_signo = number;
	task->signal = signal_for(hub, task, report);
}

void hub_signal_stopped(struct kymo_hub *hub, struct task *task, int signal)
{
	struct kymo_signal_report report;
	const struct kymo_engine *skip;
	siginfo_t before;

	task->signal = 0;
	if (hub_own_signal_stopped(task, signal))
		return;
	task->signal = signal;
	memset(&report, 0, sizeof(report));
	if (ptrace(PTRACE_GETSIGINFO, task->tid, 0, &report.info))
		return; /* it was killed */
	memcpy(&before, &report.info, sizeof(before));
	skip = untag(hub, task, &report.info);
	if (hub_events(task) & KYMO_EVENTS_SIGNAL)
		ask_engines(hub, task, &report, skip);
	if (task->signal == report.info.si_signo && memcmp(&before, &report.info, sizeof(before)))
		ptrace(PTRACE_SETSIGINFO, task->tid, 0, &report.info);
	if (task->signal == 0 || task->signal == signal)
		hub_undo_interruption(task, signal);
}
