/* What tests of the hub share: an engine that counts what it is told and answers as it is set up, and children to be
 * traced. */
#ifndef KYMO_TESTS_ENGINES_H
#define KYMO_TESTS_ENGINES_H

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "kymo/engine.h"
#include "hub/engine.h"
#include "hub/remote/client_calls.h"
#include "hub/state.h"

enum told { QUIESCE, SIGNAL, CLONE, JCTL, EXEC, ENTRY, EXIT_OF_CALL, EXIT, DEATH, REAP, RELEASE, N_TOLD };

struct book;
typedef unsigned int told_hook(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
			       void *report);

struct book {
	atomic_uint told[N_TOLD];
	told_hook *hook; /* its answer is the answer; NULL: RESUME, or the verdict so far */
	void *more;
	atomic_int last_call; /* number of the last system call at an entry */
	atomic_int status;
	atomic_int signal;
};

static inline unsigned int note(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
				void *report)
{
	unsigned int answer = KYMO_ACTION_RESUME;

	if (told == SIGNAL)
		answer |= ((struct kymo_signal_report *)report)->verdict;
	if (book->hook)
		answer = book->hook(book, engine, told, action, report);
	book->told[told]++;
	return answer;
}

static inline unsigned int on_quiesce(struct kymo_engine *engine, void *data, enum kymo_action action,
				      unsigned int event)
{
	return note(data, engine, QUIESCE, action, &event);
}

static inline unsigned int on_signal(struct kymo_engine *engine, void *data, enum kymo_action action,
				     struct kymo_signal_report *report)
{
	((struct book *)data)->signal = report->info.si_signo;
	return note(data, engine, SIGNAL, action, report);
}

#define NOTED(name, told, type) \
	static inline unsigned int on_##name(struct kymo_engine *engine, void *data, enum kymo_action action, \
					     const struct type *report) \
	{ \
		return note(data, engine, told, action, (void *)(uintptr_t)report); \
	}
NOTED(clone, CLONE, kymo_clone_report)
NOTED(jctl, JCTL, kymo_jctl_report)
NOTED(exec, EXEC, kymo_exec_report)
NOTED(syscall_exit, EXIT_OF_CALL, kymo_syscall_report)
NOTED(exit_, EXIT, kymo_exit_report)

static inline unsigned int on_syscall_entry(struct kymo_engine *engine, void *data, enum kymo_action action,
					    const struct kymo_syscall_report *report)
{
	((struct book *)data)->last_call = (int)report->number;
	return note(data, engine, ENTRY, action, (void *)(uintptr_t)report);
}

static inline unsigned int on_death(struct kymo_engine *engine, void *data, const struct kymo_death_report *report)
{
	((struct book *)data)->status = report->status;
	return note(data, engine, DEATH, KYMO_ACTION_RESUME, (void *)(uintptr_t)report);
}

static inline void on_reap(struct kymo_engine *engine, void *data, const struct kymo_reap_report *report)
{
	note(data, engine, REAP, KYMO_ACTION_RESUME, (void *)(uintptr_t)report);
}

static inline void on_release(void *data)
{
	((struct book *)data)->told[RELEASE]++;
}

static const struct kymo_engine_ops ops = {
	.size = sizeof(ops),
	.quiesce = on_quiesce,
	.signal = on_signal,
	.clone = on_clone,
	.jctl = on_jctl,
	.exec = on_exec,
	.syscall_entry = on_syscall_entry,
	.syscall_exit = on_syscall_exit,
	.exit = on_exit_,
	.death = on_death,
	.reap = on_reap,
	.release = on_release,
};

/* ---- children -------------------------------------------------------------------------------- */

/* Memory that is shared with children, for what they tell. */
struct shared {
	atomic_int ready, go, count, seen, tid, is_over;
};

static inline struct shared *share(void)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(shared, MAP_FAILED);
	memset(shared, 0, sizeof(*shared));
	return shared;
}

/* The traced process is not a child here: the tracing thread would take its end from its parent. */
struct ward {
	atomic_int pid, status, has_ended;
	pid_t parent;
};

#define MAX_WARDS 4096
static struct ward *wards;
static size_t n_wards;

static void be_parent(struct ward *ward, int (*run)(struct shared *shared), struct shared *shared)
{
	pid_t pid;
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(run(shared));
	}
	ward->pid = pid;
	while (waitpid(pid, &status, 0) < 0)
		;
	ward->status = status;
	ward->has_ended = 1;
	_exit(0);
}

static inline void nap(void)
{
	nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
}

/* Wait for what must happen, for 20 seconds and more. */
#define eventually(condition) \
	do { \
		int naps_ = 0; \
		while (!(condition) && naps_++ < 20000) \
			nap(); \
		if (naps_ >= 20000) \
			fail_msg("never so: %s", #condition); \
	} while (0)

/*
 * A process that runs this and exits with what it returns; it ends with the test. In a process with threads, such as a
 * hub's, it may find a lock of the sanitizer's taken forever when a thread ends: gcc 12's takes none of them at fork. A
 * process with threads is made before the hub.
 */
static inline pid_t child_of(int (*run)(struct shared *shared), struct shared *shared)
{
	struct ward *ward;
	pid_t parent;

	if (!wards)
		wards = mmap(NULL, MAX_WARDS * sizeof(*wards), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			     0);
	assert_true(wards != MAP_FAILED && n_wards < MAX_WARDS);
	ward = &wards[n_wards++];
	parent = fork();
	assert_true(parent >= 0);
	if (!parent)
		be_parent(ward, run, shared);
	ward->parent = parent;
	eventually(ward->pid);
	return ward->pid;
}

/* Its status, when it has ended. The last one of that id. */
static inline int end_of(pid_t pid)
{
	struct ward *ward = wards + n_wards - 1;

	while (ward->pid != pid)
		ward--;
	eventually(ward->has_ended);
	if (ward->parent)
		waitpid(ward->parent, NULL, 0);
	ward->parent = 0;
	return ward->status;
}

static inline void end_with_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(end_of(pid), SIGKILL);
}

static inline char state_of(pid_t pid)
{
	char name[64], line[512] = "";
	const char *at;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	file = fopen(name, "r");
	if (!file)
		return 'X';
	at = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	fclose(file);
	return at ? at[2] : 'X';
}

static inline pid_t tracer_of(pid_t pid)
{
	char name[64], line[512];
	int tracer = -1;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	file = fopen(name, "r");
	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		sscanf(line, "TracerPid: %d", &tracer);
	fclose(file);
	return tracer;
}

/* An engine of thread `tid` with this mask. */
static inline struct kymo_engine *engine_of(struct kymo_hub *hub, pid_t tid, struct book *book, unsigned int events)
{
	struct kymo_engine *engine = NULL;

	assert_int_equal(kymo_engine_attach(hub, tid, KYMO_ATTACH_CREATE, &ops, book, &engine), 0);
	assert_int_equal(kymo_engine_set_events(engine, events), 0);
	return engine;
}

/* Tests of the interface run twice: on a hub of this process, and through the socket of one in another. */
#ifdef KYMO_TESTS_REMOTE
static inline int be_server(struct shared *shared)
{
	struct kymo_hub *hub;

	if (kymo_hub_create(&hub) || kymo_hub_serve(hub))
		return 1;
	shared->tid = hub->tid;
	for (;;)
		pause();
}

static inline struct kymo_hub *new_hub(void)
{
	struct shared *shared = share();
	struct kymo_hub *hub = NULL;

	child_of(be_server, shared);
	eventually(shared->tid);
	assert_int_equal(hub_connect_to(shared->tid, &hub), 0);
	return hub;
}

#define REFUSAL_OF_WAIT -EOPNOTSUPP
#define IS_REMOTE true
#else
static inline struct kymo_hub *new_hub(void)
{
	struct kymo_hub *hub = NULL;

	assert_int_equal(kymo_hub_create(&hub), 0);
	return hub;
}

#define REFUSAL_OF_WAIT -EDEADLK
#define IS_REMOTE false
#endif

#endif
