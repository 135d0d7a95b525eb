/*
 * The lock, the readers, and what fork() does to both.
 *
 * fork() copies the memory as it is, and in the child only the caller goes on. So it waits until no thread changes
 * anything: the child has registry, gates and text as one batch left them, and the loader's lock is free. Readers of
 * the parent's other threads are forgotten; they would be waited for forever.
 */
#include "lock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "readers.h"
#include "record.h"
#include "toggle.h"

_Thread_local struct lib_thread kymo_lib_thread __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct lib_thread *holder; /* of the lock; read by other threads, which find that it is not they */
static int cancel_state;                /* the holder's, from before */
static struct lib_retired *retired;     /* with the lock */
static unsigned long grace; /* with the lock: the epoch to wait for, which began after all that was retired; 0: none */

bool kymo_lib_has_lock(void)
{
	return __atomic_load_n(&holder, __ATOMIC_RELAXED) == &kymo_lib_thread;
}

int kymo_lib_lock(void)
{
	int state;

	if (kymo_lib_has_lock())
		return -EDEADLK;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&lock);
	__atomic_store_n(&holder, &kymo_lib_thread, __ATOMIC_RELAXED);
	cancel_state = state;
	return 0;
}

void kymo_lib_unlock(void)
{
	int state = cancel_state;

	__atomic_store_n(&holder, NULL, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(state, NULL);
}

void kymo_lib_retire(struct lib_retired *some)
{
	if (!some)
		return;
	some->next = retired;
	retired = some;
	grace = 0;
}

void kymo_lib_begin_grace(void)
{
	grace = kymo_lib_next_epoch();
}

static void free_all(struct lib_retired *list)
{
	while (list) {
		struct lib_retired *next = list->next;
		list->free(list);
		list = next;
	}
}

void kymo_lib_unlock_and_wait(bool wait)
{
	struct lib_retired *mine = NULL;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (!kymo_lib_is_in_probe()) {
		mine = retired;
		retired = NULL;
	}
	unsigned long epoch = grace;
	grace = 0;
	kymo_lib_unlock();
	if (!kymo_lib_is_in_probe() && (mine || wait)) {
		kymo_lib_wait_for_readers(epoch ? epoch : kymo_lib_next_epoch());
		free_all(mine);
	}
	pthread_setcancelstate(state, NULL);
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* How many threads ask the loader; -1 while one forks. They are let in while it waits: one may have a lock of the
 * loader's that another waits for. No lock of the system's would do: the thread that has it is another one in the
 * child. */
static int n_asking;

static void begin_asking(void)
{
	int n = __atomic_load_n(&n_asking, __ATOMIC_RELAXED);

	while (n < 0 || !__atomic_compare_exchange_n(&n_asking, &n, n + 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		if (n < 0) {
			sched_yield();
			n = __atomic_load_n(&n_asking, __ATOMIC_RELAXED);
		}
	}
}

int kymo_lib_iterate(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data)
{
	begin_asking();
	kymo_lib_thread.in_loader++;
	int result = dl_iterate_phdr(visit, data);
	kymo_lib_thread.in_loader--;
	__atomic_fetch_sub(&n_asking, 1, __ATOMIC_RELEASE);
	return result;
}

static void close_requests(void)
{
	int none = 0;

	while (!__atomic_compare_exchange_n(&n_asking, &none, -1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		none = 0;
		sched_yield();
	}
}

/* A signal handler that has interrupted a change may fork: there is nothing to wait for then, and the change goes on in
 * both. */
static void before_fork(void)
{
	if (!kymo_lib_thread.in_loader)
		close_requests();
	kymo_lib_thread.forks_with_lock = kymo_lib_lock() < 0;
}

static void release_after_fork(void)
{
	if (!kymo_lib_thread.forks_with_lock)
		kymo_lib_unlock();
	if (!kymo_lib_thread.in_loader)
		__atomic_store_n(&n_asking, 0, __ATOMIC_RELEASE);
}

static void after_fork_in_child(void)
{
	kymo_lib_forget_readers();
	kymo_lib_forget_registration();
	kymo_record_forked();
	__atomic_store_n(&n_asking, kymo_lib_thread.in_loader ? 1 : -1, __ATOMIC_RELAXED);
	release_after_fork();
}

__attribute__((constructor(101))) static void handle_forks(void)
{
	pthread_atfork(before_fork, release_after_fork, after_fork_in_child);
}
