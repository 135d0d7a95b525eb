/*
 * Readers that hold nothing up, and how a thread waits for them.
 *
 * Each thread that passes a marker which is on has a word of its own: the epoch in which its section began, or 0. A
 * thread that has removed something begins another epoch. Then it reads all words until each has been 0, or of that
 * epoch or a later one. Why no thread has hold of what was taken out any more:
 *
 *  (a)	A section that has loaded that epoch, or a later one, has loaded it after the store that took the thing out: it
 *	finds the list without it.
 *  (b)	One that has loaded an earlier epoch either had stored it into its word when that was looked at, and is waited
 *	for; or stores it later. All four accesses are sequentially consistent: the thing is taken out, the word is
 *	looked at; the word is stored, the list is loaded. So in the second case the list is loaded without it.
 *  (c)	A word that was found so once is done with: whatever it says later is of a section that has begun later. So each
 *	is looked at until then, one after the other. Any number of threads wait at the same time, each for an epoch of
 *	its own. Words are compared by their distance, so that epochs may wrap around where they have 32 bits.
 *
 * Words are on pages that are never unmapped. A thread takes one with its first section, and gives it back when it
 * ends, by a destructor of thread-specific data: also where it ends in a probe. One without the other (a key is
 * missing, a later destructor passes markers each time) leaves a word that is 0 for ever.
 *
 * A thread that waits asks a few times, for a probe that runs on another core ends soon, then sleeps: a quarter as long
 * as it has waited, 10 ms at the most. A thread that was preempted in a probe must run again first, so the core is left
 * to it. The waiting thread is not woken, for that would cost the threads that pass markers a system call.
 */
#include "readers.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#define N_WORDS 63
#define N_LOOKS 200 /* before it sleeps */
#define FIRST_SLEEP_NS 50000
#define LAST_SLEEP_NS 10000000

struct chunk {
	_Alignas(64) struct chunk *next;
	struct lib_reader readers[N_WORDS];
};

unsigned long kymo_lib_epoch = 1;

static struct chunk first;
static struct chunk *chunks = &first; /* grows at its head */
static pthread_key_t key;
static bool has_key;

/* ---- words of threads ------------------------------------------------------------------------ */

static bool take_reader(struct lib_reader *reader)
{
	bool is_taken = false;

	return !__atomic_load_n(&reader->is_taken, __ATOMIC_RELAXED) &&
	       __atomic_compare_exchange_n(&reader->is_taken, &is_taken, true, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static struct lib_reader *find_free(void)
{
	for (struct chunk *chunk = __atomic_load_n(&chunks, __ATOMIC_ACQUIRE); chunk; chunk = chunk->next) {
		for (size_t i = 0; i < N_WORDS; i++) {
			if (take_reader(&chunk->readers[i]))
				return &chunk->readers[i];
		}
	}
	return NULL;
}

/* A thread that waits, and does not see the chunk, has looked before any of its words was stored. */
static struct lib_reader *add_chunk(void)
{
	struct chunk *chunk = mmap(NULL, sizeof(*chunk), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (chunk == MAP_FAILED)
		return NULL;
	chunk->readers[0].is_taken = true;
	chunk->next = __atomic_load_n(&chunks, __ATOMIC_ACQUIRE);
	while (!__atomic_compare_exchange_n(&chunks, &chunk->next, chunk, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))
		;
	return &chunk->readers[0];
}

/* A handler that came in between might take another, or fork: the child must know whose each word is. */
struct lib_reader *kymo_lib_take_reader(void)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	struct lib_reader *reader = find_free();
	if (!reader)
		reader = add_chunk();
	kymo_lib_thread.reader = reader;
	if (reader && has_key)
		pthread_setspecific(key, reader);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return reader;
}

/* The thread ends. It may have been in a section: canceled, or by pthread_exit() in a probe. */
static void give_back(void *data)
{
	struct lib_reader *reader = data;

	kymo_lib_thread.reader = NULL;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&reader->section, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&reader->is_taken, false, __ATOMIC_RELEASE);
}

void kymo_lib_forget_readers(void)
{
	for (struct chunk *chunk = chunks; chunk; chunk = chunk->next) {
		for (size_t i = 0; i < N_WORDS; i++) {
			struct lib_reader *reader = &chunk->readers[i];
			if (reader == kymo_lib_thread.reader)
				continue;
			__atomic_store_n(&reader->section, 0, __ATOMIC_RELAXED);
			__atomic_store_n(&reader->is_taken, false, __ATOMIC_RELAXED);
		}
	}
}

__attribute__((constructor(101))) static void create_key(void)
{
	has_key = pthread_key_create(&key, give_back) == 0;
}

/* ---- waiting --------------------------------------------------------------------------------- */

unsigned long kymo_lib_next_epoch(void)
{
	return __atomic_add_fetch(&kymo_lib_epoch, 2, __ATOMIC_SEQ_CST);
}

static bool is_before(const struct lib_reader *reader, unsigned long epoch)
{
	unsigned long section = __atomic_load_n(&reader->section, __ATOMIC_SEQ_CST);

	return section && (long)(section - epoch) < 0;
}

struct patience {
	unsigned int n_looks;
	long slept_ns;
};

static void be_patient(struct patience *patience)
{
	if (patience->n_looks < N_LOOKS) {
		patience->n_looks++;
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#endif
		return;
	}
	long ns = FIRST_SLEEP_NS + patience->slept_ns / 4;
	if (ns > LAST_SLEEP_NS)
		ns = LAST_SLEEP_NS;
	else
		patience->slept_ns += ns;
	nanosleep(&(struct timespec){ 0, ns }, NULL);
}

void kymo_lib_wait_for_readers(unsigned long epoch)
{
	struct patience patience = { 0 };

	for (struct chunk *chunk = __atomic_load_n(&chunks, __ATOMIC_SEQ_CST); chunk; chunk = chunk->next) {
		for (size_t i = 0; i < N_WORDS; i++) {
			while (is_before(&chunk->readers[i], epoch))
				be_patient(&patience);
		}
	}
}
